"""The compiler, end to end: model → graph → decisions → programs → libraries → one artifact.

One straight function; each step is a public function of its room.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from cuvil_core import support, toolchain
from cuvil_core.artifact import pack
from cuvil_core.cache import cache_dir
from cuvil_core.codegen.c import emit_program
from cuvil_core.contract import CompileRequest, Manifest, TensorSpec
from cuvil_core.errors import TargetError, UnsupportedOpError
from cuvil_core.importer import onnx as onnx_importer
from cuvil_core.ir import Dim, DType, Equalities, Graph, Op, Relation, SymbolRange
from cuvil_core.lowering import lower, ports_of
from cuvil_core.ops import Group, spec_of
from cuvil_core.passes import run as run_passes
from cuvil_core.program import LARGEST, Port, Program, Role, lifetimes, offsets, rounded, verify
from cuvil_core.runtime import cpu_features
from cuvil_core.runtime.tensors import DTYPES
from cuvil_core.runtime.variants import AVX512 as AVX512_FLAGS
from cuvil_core.runtime.variants import KNOWN
from cuvil_core.scheduling import Isa, Machine, choose
from cuvil_core.toolchain import TargetSpec
from cuvil_core.version import VERSION

Progress = Callable[[str, float], None]
"""Told the stage and the part done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One library of an artifact."""

    name: str
    isa: Isa
    target: TargetSpec
    flags: tuple[str, ...]
    """What the CPU must have, as /proc/cpuinfo spells it."""


def compile_model(source: Path | bytes, request: CompileRequest, *, progress: Progress | None = None) -> bytes:
    """The artifact of a model; equal models and requests give equal bytes.

    Raises ModelError, UnsupportedOpError, SizeError, TargetError, TimeLimitError, InfrastructureError by cause.
    """
    tell = progress or _silent
    variants = variants_of(request.target)
    tell("import", 0.0)
    graph = onnx_importer.load(source, request.inputs)
    check_ports(graph)
    name, metadata = onnx_importer.describe(source)
    tell("optimize", 0.1)
    graph, notes = run_passes(graph, request.opt_level)
    check_dtypes(graph.ops)
    programs: dict[str, Program] = {}
    for position, variant in enumerate(variants):
        tell(f"lower for {variant.isa.value}", 0.2 + 0.2 * position / len(variants))
        programs[variant.name] = lower(graph, choose(graph, Machine.of(variant.isa)), "model")
        verify(programs[variant.name])
    programs, weights = share_weights(programs)
    libraries: dict[str, bytes] = {}
    for position, variant in enumerate(variants):
        first = "" if toolchain.prepared(_toolchain_folder()) else ", after preparing the C compiler once (about 15 s)"
        tell(f"build for {variant.isa.value}{first}", 0.4 + 0.5 * position / len(variants))
        libraries[variant.name] = build(programs[variant.name], variant, graph.symbols)
    tell("pack", 0.9)
    facts = facts_of(graph, programs, variants) | {"notes": [str(note) for note in notes]}
    manifest = manifest_of(graph, request, _digest(source), artifact_name(name), metadata, facts)
    artifact = pack(manifest, libraries, weights)
    tell("done", 1.0)
    return artifact


def check_ports(graph: Graph) -> None:
    """Raise UnsupportedOpError for an input or output that no array of the runtime can hold."""
    inputs, outputs = ports_of(graph)
    for port in (*inputs, *outputs):
        if port.kind not in DTYPES:
            raise UnsupportedOpError(
                f"{port.name!r} is {port.kind}, which NumPy lacks; make it float32 in the model and cast inside"
            )


def check_dtypes(ops: Iterable[Op]) -> None:
    """Raise UnsupportedOpError for an op in bfloat16, which kernels move, choose and cast but do not compute."""
    for op in ops:
        narrow = any(value.dtype is DType.BFLOAT16 for value in (*op.operands, *op.results))
        if narrow and op.name not in _MOVED and spec_of(op.name).group not in (Group.MOVEMENT, Group.CONTROL):
            raise UnsupportedOpError(
                f"{op.provenance} has no kernel for bfloat16 ({op.name}); cast its tensors to float32 in the model"
            )
        check_dtypes(op.region.ops if op.region else ())
        for block in op.blocks:
            check_dtypes(block.ops)


_MOVED = ("bitcast", "cast", "constant", "region", "select")


def variants_of(target: str) -> tuple[Variant, ...]:
    """The libraries that a target's artifact holds; raises TargetError for a target without a back end."""
    if target == "x86_64-cpu":
        return (
            Variant("x86_64-avx2", Isa.AVX2, toolchain.AVX2, KNOWN["x86_64-avx2"]),
            Variant("x86_64-avx512", Isa.AVX512, toolchain.AVX512, KNOWN["x86_64-avx512"]),
        )
    if target == "native":
        features = cpu_features()
        best = Isa.AVX512 if features >= set(AVX512_FLAGS) else Isa.AVX2
        flags = tuple(sorted(flag for flag in features if flag.startswith(_VECTOR_FLAGS)))
        return (Variant(f"native-{best.value}", best, toolchain.native(), flags),)
    raise TargetError(f"there is no back end for target {target!r} yet; use x86_64-cpu or native")


_VECTOR_FLAGS = ("avx", "fma", "f16c", "bmi", "sse", "ssse", "amx", "gfni", "vaes", "adx", "movbe", "popcnt", "abm")
"""Instruction-set flags that the compiler may rely on for the machine at hand."""


def build(program: Program, variant: Variant, symbols: tuple[SymbolRange, ...] = ()) -> bytes:
    """The shared object of one variant; `symbols` are the ranges that it may rely on."""
    ranges = {one.name: (one.least, one.greatest) for one in symbols}
    sources = {**emit_program(program, variant.isa.value, ranges), **support.sources(bool(program.calls))}
    return toolchain.build(sources, support.headers(), variant.target, cache_dir=_toolchain_folder())


def _toolchain_folder() -> Path:
    """Where the C compiler keeps what it builds once: in the cache, or among temporary files where it is read-only."""
    folder = cache_dir() / "toolchain"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / f"cuvil-toolchain-{os.getuid()}"
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir()) / f"cuvil-toolchain-{os.getuid()}"


def share_weights(programs: Mapping[str, Program]) -> tuple[dict[str, Program], bytes]:
    """One weight segment for all variants: equal ones once, others one after another with their offsets moved."""
    segment = bytearray()
    starts: dict[bytes, int] = {}
    moved: dict[str, Program] = {}
    for name, program in programs.items():
        digest = sha256(program.weights).digest()
        if digest not in starts:
            starts[digest] = len(segment)
            segment += program.weights
        start = starts[digest]
        buffers = tuple(
            replace(one, position=one.position + start) if one.role is Role.WEIGHT else one for one in program.buffers
        )
        moved[name] = replace(program, buffers=buffers)
    return moved, bytes(segment)


def facts_of(graph: Graph, programs: Mapping[str, Program], variants: tuple[Variant, ...]) -> dict[str, Any]:
    """Counts and texts for reports and error sentences."""
    best = programs[variants[-1].name]
    bounds: dict[str, list[int | None]] = {one.name: [one.least, one.greatest] for one in graph.input_symbols}
    return {
        "ops": len([op for op in graph.ops if op.name != "constant"]),
        "kernels": len(best.kernels),
        "launches": len(best.launches),
        "weight_bytes": len(best.weights),
        "arena_bytes_at_least": arena_bytes(best, _least(graph)),
        "arena_bytes_at_most": _arena_at_most(best, bounds),
        "guards": [*map(str, graph.guards), f"that all sizes stay below {LARGEST} bytes"],
        "asserts": [one.text for one in best.asserts],
        "binds": [f"that the extent {one.symbol} of {one.origin} is not negative" for one in best.binds],
        "symbols": [symbol.name for symbol in graph.input_symbols],
        "bounds": bounds,
        "variants": {variant.name: list(variant.flags) for variant in variants},
    }


def arena_bytes(program: Program, symbols: Mapping[str, int]) -> int:
    """Bytes of temporaries for these symbols."""
    lives = lifetimes(program)
    return offsets(lives, [rounded(life.buffer.bytes.evaluate(symbols)) for life in lives])[1]


def _least(graph: Graph) -> dict[str, int]:
    """The least extent of every symbol by its range and by guards such as 7 <= H and K == 16."""
    equalities = Equalities(graph.guards)
    known = {symbol.name: equalities.canonical(Dim.symbol(symbol.name)).constant for symbol in graph.input_symbols}
    found = {symbol.name: known[symbol.name] or symbol.least for symbol in graph.input_symbols}
    for guard in graph.guards:
        name, least = str(guard.right), guard.left.constant
        if guard.relation is Relation.AT_MOST and name in found and least is not None:
            found[name] = max(found[name], least)
    return found


def _arena_at_most(program: Program, bounds: Mapping[str, list[int | None]]) -> int | None:
    """None where a symbol has no upper bound."""
    greatest = {name: pair[1] for name, pair in bounds.items() if pair[1] is not None}
    return arena_bytes(program, greatest) if len(greatest) == len(bounds) else None


def manifest_of(
    graph: Graph,
    request: CompileRequest,
    digest: str,
    name: str,
    metadata: dict[str, str],
    facts: dict[str, Any],
) -> Manifest:
    """The head of the artifact; segments are filled in by `pack`."""
    inputs, outputs = ports_of(graph)
    specs = tuple(map(_spec, inputs)), tuple(map(_spec, outputs))
    return Manifest(name, digest, request, specs[0], specs[1], (), VERSION, metadata, facts)


def _spec(port: Port) -> TensorSpec:
    return TensorSpec(port.name, port.kind, tuple(map(_extent, port.type.shape)))


def _extent(extent: Dim) -> int | str:
    return str(extent) if extent.constant is None else extent.constant


def _digest(source: Path | bytes) -> str:
    if isinstance(source, bytes):
        return sha256(source).hexdigest()
    with open(source, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _silent(stage: str, part: float) -> None:
    """Nobody listens."""


def artifact_name(text: str) -> str:
    """A name fit for metrics and file names, from the model's own; `model` when nothing is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:63] or "model"
