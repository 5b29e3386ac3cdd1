"""The inputs of a model: the file's shapes joined with the caller's `InputSpec`s."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from cuvil_core.contract import InputSpec
from cuvil_core.errors import InputError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx.reading import held
from cuvil_core.importer.onnx.tensors import ELEMENTS, kind_of
from cuvil_core.ir import Dim, Element, TensorType, is_from_data

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"max", "min"})
MAX_RANK = 16


@dataclass(frozen=True, slots=True)
class Signature:
    """Typed inputs in the file's order, ranges of their symbols, and which symbols stand for a fixed extent."""

    inputs: tuple[tuple[str, TensorType], ...]
    bounds: Mapping[str, tuple[int, int]]
    rebatched: Mapping[str, int]
    """Symbol that the caller put in place of a number of the file → that number."""
    elements: Mapping[str, Element] = field(default_factory=dict)
    """Input → its narrow type, for those that have one."""


@dataclass(slots=True)
class _Names:
    """Gives file names of symbols legal, distinct spellings."""

    taken: set[str]
    given: dict[str, str] = field(default_factory=dict)

    def of(self, file_name: str) -> str:
        """The spelling of a name of the file, the same each time."""
        return self.given.get(file_name) or self.given.setdefault(file_name, self.fresh(file_name))

    def fresh(self, wanted: str) -> str:
        """A new name like the wanted one."""
        plain = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "dim"
        plain = f"d{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in _RESERVED else plain[:64]
        name, count = plain, 1
        while name in self.taken:
            count += 1
            name = f"{plain}_{count}"
        self.taken.add(name)
        return name


def read_signature(inputs: Iterable[onnx.ValueInfoProto], specs: tuple[InputSpec, ...]) -> Signature:
    """The signature; InputError where a spec does not fit the file, ModelError where the file's inputs are broken."""
    protos = list(inputs)
    by_name = _specs_by_name(specs, [proto.name for proto in protos])
    names = _Names({entry for spec in specs for entry in spec.shape if isinstance(entry, str)})
    _adopt(protos, by_name, names)
    rebatched: dict[str, int] = {}
    typed = tuple((proto.name, _type(proto, by_name.get(proto.name), names, rebatched)) for proto in protos)
    kinds = {proto.name: ELEMENTS.get(held(proto.type).tensor_type.elem_type) for proto in protos}
    elements = {name: element for name, element in kinds.items() if element is not None}
    return Signature(typed, _bounds(specs), rebatched, elements)


def _specs_by_name(specs: tuple[InputSpec, ...], known: list[str]) -> dict[str, InputSpec]:
    if len(set(known)) != len(known):
        raise ModelError("Two inputs of the model have the same name; export it again.")
    for spec in specs:
        if spec.name not in known:
            raise InputError(f"The model has no input {spec.name!r}; it has {', '.join(known)}.")
        for entry in spec.shape:
            bad = entry < 1 if isinstance(entry, int) else (not _IDENTIFIER.fullmatch(entry) or entry in _RESERVED)
            bad = bad or is_from_data(str(entry))
            if bad:
                raise InputError(f"{entry!r} in the shape of {spec.name!r} is neither a positive number nor a name.")
    return {spec.name: spec for spec in specs}


def _bounds(specs: tuple[InputSpec, ...]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for spec in specs:
        for symbol, (least, greatest) in spec.bounds.items():
            if symbol not in spec.shape:
                raise InputError(f"{spec.name!r} bounds {symbol!r}, which its shape does not name; correct the name.")
            if not 1 <= least <= greatest or found.get(symbol, (least, greatest)) != (least, greatest):
                raise InputError(f"The bounds {least}..{greatest} of {symbol!r} are empty, below 1 or given twice.")
            found[symbol] = (least, greatest)
    return found


def _adopt(protos: list[onnx.ValueInfoProto], specs: Mapping[str, InputSpec], names: _Names) -> None:
    """Where a spec renames a symbol of the file, other inputs that use it get the new name too."""
    for proto in protos:
        spec = specs.get(proto.name)
        dims = held(proto.type).tensor_type.shape.dim
        for dim, entry in zip(dims, spec.shape if spec else (), strict=False):
            if dim.dim_param and isinstance(entry, str) and _is_name(dim.dim_param):
                names.given.setdefault(dim.dim_param, entry)


def _is_name(text: str) -> bool:
    """False for what exporters write for `unknown`: `?`, `-1`, numbers."""
    return bool(re.search(r"[A-Za-z_]", text))


def _type(proto: onnx.ValueInfoProto, spec: InputSpec | None, names: _Names, rebatched: dict[str, int]) -> TensorType:
    where = f"Input {proto.name!r}"
    if held(proto.type).WhichOneof("value") != "tensor_type":
        raise UnsupportedOpError(f"{where} is not a tensor, which Cuvil does not compile; export a model of tensors.")
    tensor = held(proto.type).tensor_type
    dtype, _ = kind_of(tensor.elem_type, where)
    if not tensor.HasField("shape") and spec is None:
        raise UnsupportedOpError(f"{where} has no shape; declare it with names for its dimensions.")
    file_dims = list(tensor.shape.dim) if tensor.HasField("shape") else None
    rank = len(file_dims) if file_dims is not None else len(spec.shape if spec else ())
    if rank > MAX_RANK:
        raise UnsupportedOpError(f"{where} has rank {rank}, more than {MAX_RANK}; export the model again.")
    if spec is not None and len(spec.shape) != rank:
        raise InputError(f"{where} has rank {rank}, not {len(spec.shape)}; correct its declared shape.")
    shape = tuple(
        _dim(proto.name, axis, file_dims[axis] if file_dims else None, spec, names, rebatched) for axis in range(rank)
    )
    return TensorType(dtype, shape)


def _dim(
    name: str,
    axis: int,
    file_dim: "onnx.TensorShapeProto.Dimension | None",
    spec: InputSpec | None,
    names: _Names,
    rebatched: dict[str, int],
) -> Dim:
    fixed = file_dim.dim_value if file_dim is not None and file_dim.HasField("dim_value") else None
    fixed = fixed if fixed is not None and fixed >= 0 else None
    if spec is not None:
        entry = spec.shape[axis]
        if isinstance(entry, int):
            if fixed not in (None, entry):
                raise InputError(f"Axis {axis} of {name!r} is {fixed} in the file, not {entry}; name it to vary it.")
            return Dim.of(entry)
        if fixed is not None:
            rebatched[entry] = fixed
        return Dim.symbol(entry)
    if fixed is not None:
        return Dim.of(fixed)
    label = file_dim.dim_param if file_dim is not None else ""
    return Dim.symbol(names.of(label) if _is_name(label) else names.fresh(f"{name}_{axis}"))
