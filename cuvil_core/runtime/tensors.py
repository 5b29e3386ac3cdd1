"""A caller's tensors → contiguous arrays that fit the signature, or one sentence that says what does not fit."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import Manifest, TensorSpec
from cuvil_core.errors import ArtifactError, InputError
from cuvil_core.runtime.elements import LACKING, dtype_of, from_torch, to_bytes

DTYPES = LACKING | {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
}  # fmt: skip
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Input:
    """One input with its symbols resolved to positions."""

    spec: TensorSpec
    dtype: np.dtype[Any]
    fixed: tuple[tuple[int, int], ...]
    """(axis, extent)"""
    symbolic: tuple[tuple[int, int], ...]
    """(axis, index of the symbol)"""


class Binder:
    """Checks tensors against a manifest and reads the symbols' values off their shapes."""

    def __init__(self, manifest: Manifest, where: str) -> None:
        """Raises ArtifactError when the manifest's facts contradict its signature."""
        self.symbols = _symbols(manifest, where)
        self.bounds = tuple(_bounds(manifest, name, where) for name in self.symbols)
        self._inputs = tuple(self._input(spec, where) for spec in manifest.inputs)
        self._by_name = {one.spec.name: one for one in self._inputs}

    def arrange(self, arguments: Sequence[object], named: Mapping[str, object]) -> list[object]:
        """Put positional and named arguments into the signature's order; raises InputError."""
        if len(arguments) > len(self._inputs):
            raise InputError(f"{len(arguments)} inputs were passed, wanted {self._wanted()}")
        found = {one.spec.name: value for one, value in zip(self._inputs, arguments, strict=False)}
        for name, value in named.items():
            if name not in self._by_name:
                raise InputError(f"there is no input {name!r}, wanted {self._wanted()}")
            if name in found:
                raise InputError(f"input {name!r} was passed by position and by name; pass it once")
            found[name] = value
        missing = [name for name in self._by_name if name not in found]
        if missing:
            raise InputError(f"input {missing[0]!r} is missing, wanted {self._wanted()}")
        return [found[name] for name in self._by_name]

    def bind(self, values: Sequence[object]) -> tuple[list[Array], tuple[int, ...]]:
        """Give arrays ready for C and the symbols' values; raises InputError."""
        extents: list[int] = [0] * len(self.symbols)
        arrays = [self._check(one, value, extents) for one, value in zip(self._inputs, values, strict=True)]
        return arrays, tuple(extents)

    def extents(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Give the symbols' values for inputs of such shapes; raises InputError."""
        extents: list[int] = [0] * len(self.symbols)
        for one in self._inputs:
            if one.spec.name not in shapes:
                raise InputError(f"input {one.spec.name!r} is missing, wanted {self._wanted()}")
            self._fit(one, shapes[one.spec.name], extents)
        return tuple(extents)

    def _check(self, wanted: _Input, value: object, extents: list[int]) -> Array:
        array = _to_array(value, wanted.spec)
        if array.dtype != wanted.dtype:
            raise InputError(
                f"input {wanted.spec.name!r} is {array.dtype}, wanted {wanted.spec.dtype}: convert it before the call"
            )
        self._fit(wanted, array.shape, extents)
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = array.copy(order="C")
        return to_bytes(array, wanted.spec.dtype)

    def _fit(self, wanted: _Input, shape: tuple[int, ...], extents: list[int]) -> None:
        if len(shape) != len(wanted.spec.shape):
            raise _misshapen(wanted.spec, shape, f"it must have {len(wanted.spec.shape)} axes")
        for axis, extent in wanted.fixed:
            if shape[axis] != extent:
                raise _misshapen(wanted.spec, shape, f"axis {axis} must be {extent}")
        for axis, index in wanted.symbolic:
            self._assign(wanted.spec, shape, axis, index, extents)

    def _assign(self, spec: TensorSpec, shape: tuple[int, ...], axis: int, index: int, extents: list[int]) -> None:
        extent, name = shape[axis], self.symbols[index]
        if extents[index] and extents[index] != extent:
            raise _misshapen(spec, shape, f"axis {axis} ({name}) must be {extents[index]} as elsewhere in this call")
        least, most = self.bounds[index]
        if extent < least or (most is not None and extent > most):
            bound = f"at least {least}" if most is None else f"from {least} to {most}"
            raise _misshapen(spec, shape, f"axis {axis} ({name}) must be {bound}")
        extents[index] = extent

    def _input(self, spec: TensorSpec, where: str) -> _Input:
        if spec.dtype not in DTYPES:
            raise ArtifactError(
                f"{where} has input {spec.name!r} of type {spec.dtype!r}, which NumPy lacks; compile it again"
            )
        unknown = [one for one in spec.shape if isinstance(one, str) and one not in self.symbols]
        if unknown:
            raise ArtifactError(
                f"{where} has input {spec.name!r} with extent {unknown[0]!r}, no symbol; compile it again"
            )
        fixed = tuple((axis, one) for axis, one in enumerate(spec.shape) if isinstance(one, int))
        symbolic = tuple((axis, self.symbols.index(one)) for axis, one in enumerate(spec.shape) if isinstance(one, str))
        return _Input(spec, dtype_of(spec.dtype), fixed, symbolic)

    def _wanted(self) -> str:
        return ", ".join(describe(one.spec) for one in self._inputs) or "no inputs"


def describe(spec: TensorSpec) -> str:
    """Give `x float32(N, 3, 224, 224)`."""
    return f"{plain(spec.name)} {plain(spec.dtype)}({', '.join(plain(str(one)) for one in spec.shape)})"


def plain(text: str) -> str:
    """Give the text as it is when it fits into a sentence, else quoted: names come from files."""
    return text if text.isprintable() else repr(text)


def is_torch(value: object) -> bool:
    """Tell a torch tensor without importing torch: who passes one has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _to_array(value: Any, spec: TensorSpec) -> Array:
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    try:
        if is_torch(value):
            return from_torch(value, spec.dtype)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
    except Exception as fault:  # any array library may refuse in its own way
        raise InputError(
            f"input {spec.name!r} cannot be read as an array in main memory ({fault}), wanted {describe(spec)}: "
            "pass it on the CPU and in that type"
        ) from fault
    kind = type(value).__name__
    raise InputError(f"input {spec.name!r} is of type {kind}, wanted a NumPy array or torch tensor {describe(spec)}")


def _misshapen(spec: TensorSpec, shape: tuple[int, ...], cure: str) -> InputError:
    wanted = f"({', '.join(map(str, spec.shape))})"
    return InputError(f"input {spec.name!r} has shape ({', '.join(map(str, shape))}), wanted {wanted}: {cure}")


def _symbols(manifest: Manifest, where: str) -> tuple[str, ...]:
    seen = dict.fromkeys(one for spec in manifest.inputs for one in spec.shape if isinstance(one, str))
    stated = manifest.facts.get("symbols")
    if stated is None:
        return tuple(seen)
    good = isinstance(stated, list | tuple) and all(isinstance(one, str) and one in seen for one in stated)
    if not good or len(set(stated)) != len(stated):
        raise ArtifactError(f"{where} must name symbols that its inputs' shapes give, each once; compile it again")
    return tuple(stated)


def _bounds(manifest: Manifest, symbol: str, where: str) -> tuple[int, int | None]:
    stated = manifest.facts.get("bounds", {})
    if not isinstance(stated, Mapping):
        raise ArtifactError(f"{where} states bounds that are no object; compile it again")
    if symbol in stated:
        match stated[symbol]:
            case [int(least), int() | None as most] if not isinstance(least, bool) and not isinstance(most, bool):
                return max(1, least), most
        raise ArtifactError(
            f"{where} states bounds of {symbol!r} that are no least and greatest extent; compile it again"
        )
    asked = [one.bounds[symbol] for one in manifest.request.inputs if symbol in one.bounds]
    if not asked:
        return 1, None
    return max(1, *(low for low, _ in asked)), min(high for _, high in asked)
