"""A loaded model, called like a function."""

import ctypes
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cuvil_core.artifact import Artifact, publish
from cuvil_core.contract import TensorSpec, signature_text
from cuvil_core.errors import ArtifactError, InputError, InternalError, SizeError
from cuvil_core.runtime.arena import ArenaStore
from cuvil_core.runtime.elements import dtype_of, from_bytes, storage_of, to_torch
from cuvil_core.runtime.host import Host
from cuvil_core.runtime.library import Library, int64_array, pointer_array
from cuvil_core.runtime.memory import require
from cuvil_core.runtime.pool import POOL
from cuvil_core.runtime.tensors import DTYPES, Array, Binder, describe, is_torch, plain

REMEMBERED = 256
"""Sets of symbols whose sizes are kept."""
NO_MEMORY = -1
"""What a call answers that was given no memory."""
FROM_DATA = -1
"""What `cuvil_prepare` says of an extent that comes from data."""
LARGEST = 1 << 46
"""Bytes or elements beyond which a size is nonsense."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs in order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def __str__(self) -> str:
        """Give `(x float32(N, 3)) → y float32(N, 10)`."""
        return f"({', '.join(map(describe, self.inputs))}) → {', '.join(map(describe, self.outputs))}"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What was loaded, and how."""

    name: str
    model_sha256: str
    target: str
    precision: str
    opt_level: int
    compiler: str
    variant: str
    threads: int
    weight_bytes: int
    load_ms: float
    facts: dict[str, Any]
    """The compiler's counts: ops, kernels, guards, bounds."""

    def to_json(self) -> str:
        """Give a canonical text."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What `cuvil_prepare` said for one set of symbols."""

    symbols: "ctypes.Array[ctypes.c_int64]"
    arena_bytes: int
    shapes: tuple[tuple[int, ...] | None, ...]
    """None for an output whose extents come from data."""


class CuvilModule:
    """A compiled model. Calls are safe from any thread; each is computed by the process's one thread pool."""

    def __init__(self, artifact: Artifact, library: Library, weights: memoryview, variant: str) -> None:
        """Used by `load`; raises ArtifactError for a signature that cannot be."""
        manifest = artifact.manifest
        self._artifact, self._library, self._weights = artifact, library, weights
        self._weights_address = _address(weights)
        self._binder = Binder(manifest, artifact.where)
        self._outputs = tuple((spec.name, _output_dtype(spec, artifact.where)) for spec in manifest.outputs)
        self._ranks = tuple(len(spec.shape) for spec in manifest.outputs)
        self._arenas = ArenaStore()
        symbols = dict(zip(self._binder.symbols, self._binder.bounds, strict=True))
        library.check(signature_text(symbols, manifest.inputs, manifest.outputs), len(weights), artifact.where)
        self._plans: dict[tuple[int, ...], _Plan] = {}
        self._plans_lock = threading.Lock()
        self._variant = variant
        self._load_ms = 0.0

    @property
    def signature(self) -> Signature:
        """Names, dtypes and shapes."""
        return Signature(self._artifact.manifest.inputs, self._artifact.manifest.outputs)

    @property
    def symbols(self) -> dict[str, tuple[int, int | None]]:
        """Symbol → (least, greatest) extent; None where there is no greatest."""
        return dict(zip(self._binder.symbols, self._binder.bounds, strict=True))

    @property
    def metadata(self) -> dict[str, str]:
        """The source model's own metadata, such as a character table."""
        return dict(self._artifact.manifest.metadata)

    @property
    def artifact(self) -> Artifact:
        """The open artifact behind this module."""
        return self._artifact

    @property
    def report(self) -> LoadReport:
        """What was loaded, and how."""
        made = self._artifact.manifest
        return LoadReport(
            made.name,
            made.model_sha256,
            made.request.target,
            made.request.precision,
            made.request.opt_level,
            made.compiler,
            self._variant,
            max(1, POOL.threads),
            len(self._weights),
            self._load_ms,
            dict(made.facts),
        )

    def __repr__(self) -> str:
        """Give name, signature and variant."""
        return f"<CuvilModule {self._artifact.manifest.name}{self.signature} on {self._variant}>"

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Compute. Inputs by position or by name, NumPy or torch; one output comes alone, several as a tuple.

        Torch tensors come back if any input is one. Contiguous inputs are read where they lie. Raises InputError.
        """
        values = self._binder.arrange(arguments, named)
        outputs: Sequence[object] = self._compute(values)
        if any(map(is_torch, values)):
            outputs = [to_torch(one) for one in outputs if isinstance(one, np.ndarray)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Compute by names: input name → tensor in, output name → array out. Raises InputError."""
        outputs = self._compute(self._binder.arrange((), inputs))
        return dict(zip((name for name, _ in self._outputs), outputs, strict=True))

    def arena_bytes(self, inputs: Mapping[str, object]) -> int:
        """Give the bytes of intermediate tensors that a call with such inputs takes."""
        return self._plan(self._binder.bind(self._binder.arrange((), inputs))[1]).arena_bytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to `path`, whole or not at all. Raises InfrastructureError."""
        publish(self._artifact.data, Path(path))

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise InputError for shapes that a call refuses, SizeError where inputs and call exceed the memory."""
        symbols = self._binder.extents(shapes)
        plan = self._plan(symbols)
        inputs = sum(prod(shapes[spec.name]) * dtype_of(spec.dtype).itemsize for spec in self.signature.inputs)
        require(inputs + self._call_bytes(plan), f"a call at {self._spell(symbols) or 'its fixed sizes'}")

    def _compute(self, values: Sequence[object]) -> list[Array]:
        arrays, symbols = self._binder.bind(values)
        plan = self._plan(symbols)
        outputs = self._allocate(plan)
        sources = pointer_array([one.__array_interface__["data"][0] for one in arrays])
        targets = pointer_array([0 if one is None else one.__array_interface__["data"][0] for one in outputs])
        pool = POOL.address(self._library)
        host = Host([dtype for _, dtype in self._outputs], self._ranks) if self._asks else None
        memory = None if host is None else host.address

        def run(arena: int) -> int:
            return int(self._library.run(plan.symbols, sources, targets, self._weights_address, arena, pool, memory))

        code = self._arenas.lend(plan.arena_bytes, run)
        if code != 0:
            raise (host.fault if host is not None and code == NO_MEMORY else None) or self._broken(code)
        made = {} if host is None else host.outputs
        found = [made[at] if one is None else one for at, one in enumerate(outputs)]
        specs = self._artifact.manifest.outputs
        return [from_bytes(one, spec.dtype) for one, spec in zip(found, specs, strict=True)]

    @property
    def _asks(self) -> bool:
        """True for a program that learns extents from data while it runs."""
        return bool(self._artifact.manifest.facts.get("binds"))

    def _allocate(self, plan: _Plan) -> list[Array | None]:
        try:
            return [
                None if shape is None else np.empty(shape, dtype)
                for shape, (_, dtype) in zip(plan.shapes, self._outputs, strict=True)
            ]
        except MemoryError as fault:
            size = self._output_bytes(plan)
            raise SizeError(
                f"{size} bytes for outputs cannot be had; pass smaller inputs or raise the memory limit"
            ) from fault

    def _output_bytes(self, plan: _Plan) -> int:
        pairs = zip(plan.shapes, self._outputs, strict=True)
        return sum(prod(shape) * dtype.itemsize for shape, (_, dtype) in pairs if shape is not None)

    def _call_bytes(self, plan: _Plan) -> int:
        return plan.arena_bytes + self._output_bytes(plan)

    def _plan(self, symbols: tuple[int, ...]) -> _Plan:
        plan = self._plans.get(symbols)
        if plan is None:
            plan = self._prepare(symbols)
            with self._plans_lock:
                if len(self._plans) >= REMEMBERED:
                    del self._plans[next(iter(self._plans))]
                self._plans[symbols] = plan
        return plan

    def _prepare(self, symbols: tuple[int, ...]) -> _Plan:
        values, arena, dims = int64_array(symbols), ctypes.c_int64(0), int64_array([0] * sum(self._ranks))
        code = self._library.prepare(values, ctypes.byref(arena), dims)
        if code != 0:
            raise self._broken_guard(code, symbols)
        left = iter(dims)
        stated = [tuple(next(left) for _ in range(rank)) for rank in self._ranks]
        shapes = tuple(None if self._asks and FROM_DATA in shape else shape for shape in stated)
        sizes = [arena.value, *(extent for shape in shapes if shape is not None for extent in shape)]
        if min(sizes) < 0:
            raise InputError(
                f"the inputs are too small ({self._spell(symbols)}), a size falls below 0; pass larger ones"
            )
        if max(sizes) >= LARGEST:
            raise SizeError(f"the sizes for {self._spell(symbols)} are beyond any memory; pass smaller inputs")
        plan = _Plan(values, arena.value, shapes)
        require(self._call_bytes(plan), f"a call at {self._spell(symbols) or 'its fixed sizes'}")
        return plan

    def _broken(self, code: int) -> InputError | SizeError | InternalError:
        """The error of a call that ended with a code: conditions on values, then guards, then extents from data."""
        facts = self._artifact.manifest.facts
        texts = [_texts(facts.get(name)) for name in ("asserts", "guards", "binds")]
        found = _text([text for part in texts for text in part], code - 1)
        if found is None:
            return InternalError(f"{self._artifact.where} ended with code {code}; report it with the model")
        kind = SizeError if texts[1] and code == len(texts[0]) + len(texts[1]) else InputError
        return kind(f"the inputs' values break the model's condition {found}; change them")

    def _broken_guard(self, code: int, symbols: tuple[int, ...]) -> InputError:
        text = _text(self._artifact.manifest.facts.get("guards"), code - 1) or f"guard {code - 1}"
        return InputError(
            f"the inputs' shapes ({self._spell(symbols)}) break the model's condition {text}; change them"
        )

    def _spell(self, symbols: tuple[int, ...]) -> str:
        return ", ".join(f"{plain(name)} = {value}" for name, value in zip(self._binder.symbols, symbols, strict=True))


def _text(texts: object, index: int) -> str | None:
    return str(texts[index]) if isinstance(texts, list | tuple) and 0 <= index < len(texts) else None


def _texts(texts: object) -> list[str]:
    return list(map(str, texts)) if isinstance(texts, list | tuple) else []


def _output_dtype(spec: TensorSpec, where: str) -> np.dtype[Any]:
    if spec.dtype not in DTYPES:
        raise ArtifactError(
            f"{where} has output {spec.name!r} of type {spec.dtype!r}, which NumPy lacks; compile it again"
        )
    return storage_of(spec.dtype)


def _address(view: memoryview) -> int | None:
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0]) if len(view) else None
