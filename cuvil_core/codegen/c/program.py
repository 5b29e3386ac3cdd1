"""A Program as C: kernels in several files, and one file with the functions of `cuvil.h`.

The host file holds sizes and guards as expressions over the symbols, the plan of the arena as tables, and the
statements in turn. Compiled with CUVIL_PROFILE it also counts nanoseconds a launch.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.codegen.c.kernels import PRELUDE, emit_kernel, prototypes
from cuvil_core.codegen.c.program_arena import arena_text
from cuvil_core.codegen.c.program_run import run_text
from cuvil_core.codegen.c.program_sizes import dims_of, nonsense
from cuvil_core.contract import TensorSpec, signature_text
from cuvil_core.ir import Dim
from cuvil_core.program import Port, Program, Role, due

UNIT_BYTES = 48 << 10
"""Text of kernels a file, about: small enough that all cores have work, large enough that headers do not dominate."""
MIN_UNITS = 2
Ranges = Mapping[str, tuple[int, int | None]]


def emit_program(program: Program, isa: str = "avx512", ranges: Ranges | None = None) -> dict[str, str]:
    """File name → C text; equal arguments give equal text. `ranges`: least and greatest extents that were relied on."""
    texts = [emit_kernel(one.kernel, one.schedule, isa) for one in program.kernels]
    files = {f"kernels{number}.c": PRELUDE + "\n".join(unit) for number, unit in enumerate(_units(texts))}
    files["program.c"] = host_text(program, ranges or {})
    return files


def host_text(program: Program, ranges: Ranges) -> str:
    """The file with `cuvil_expects`, `cuvil_prepare` and `cuvil_run`."""
    symbols = {name: f"symbols[{position}]" for position, name in enumerate(program.symbols)}
    called = dict.fromkeys(one.function for one in program.calls)
    declared = [f"void {name}(void *const *buffers, const int64_t *extents);" for name in called]
    parts = [PRELUDE, *declared, *(prototypes(one.kernel) for one in program.kernels), arena_text(program, symbols)]
    parts += [_prepare(program, symbols), run_text(program, symbols), _profile(program)]
    parts += [_expects(program, ranges), _version()]
    return "\n".join(parts)


def _units(texts: Sequence[str]) -> Iterator[list[str]]:
    """Kernels dealt out so that all files are about equally long; longest first, each to the shortest file."""
    count = max(MIN_UNITS, -(-sum(map(len, texts)) // UNIT_BYTES))
    units: list[list[int]] = [[] for _ in range(count)]
    lengths = [0] * count
    for position in sorted(range(len(texts)), key=lambda one: (-len(texts[one]), one)):
        shortest = lengths.index(min(lengths))
        units[shortest].append(position)
        lengths[shortest] += len(texts[position])
    for unit in units:
        if unit:
            yield [texts[position] for position in sorted(unit)]


def _prepare(program: Program, symbols: dict[str, str]) -> str:
    code, arrivals = len(program.guards) + 1, program.arrivals
    lines = [
        "int32_t cuvil_prepare(const int64_t *symbols, int64_t *arena_bytes, int64_t *output_dims)",
        "{",
        "    (void)symbols, (void)output_dims;",
        *(f"    if (symbols[{position}] < 1) return {code};" for position in range(len(program.given))),
        *(f"    if ({condition}) return {code};" for condition in nonsense(dims_of(program), symbols)),
    ]
    for position, guard in enumerate(program.guards):
        if due(arrivals, (guard.left, guard.right)) == 0:
            left, right = dim_text(guard.left, symbols), dim_text(guard.right, symbols)
            lines.append(f"    if (!({left} {guard.relation.value} {right})) return {position + 1};")
    for at, extent in enumerate(extent for port in program.outputs for extent in port.type.shape):
        text = dim_text(extent, symbols) if due(arrivals, (extent,)) == 0 else "-1"
        lines.append(f"    output_dims[{at}] = {text};")
    lines += [
        "    int64_t sizes[PLACES0], offsets[PLACES0];",
        "    sizes0(symbols, sizes);",
        "    *arena_bytes = place_buffers(lives0, sizes, BUFFERS0, offsets);",
        f"    return *arena_bytes <= LARGEST ? 0 : {code};",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _profile(program: Program) -> str:
    return (
        "#ifdef CUVIL_PROFILE\n"
        f"CUVIL_EXPORT int64_t *cuvil_profile(int64_t *count) {{ *count = {len(program.launches)}; "
        "return profile_ns; }\n"
        "#endif\n"
    )


def _expects(program: Program, ranges: Ranges) -> str:
    symbols = {}
    for name in program.given:
        least, greatest = ranges.get(name, (1, None))
        symbols[name] = (max(1, least), greatest)
    text = signature_text(symbols, map(_spec, program.inputs), map(_spec, program.outputs))
    ends = [one.position + (one.bytes.constant or 0) for one in program.of_role(Role.WEIGHT)]
    # The text is printable ASCII, so JSON's quoting is C's, but for trigraphs.
    literal = json.dumps(text).replace("?", "\\?")
    return (
        f"static const struct cuvil_expectation expectation = {{INT64_C({max(ends, default=0)}), {literal}}};\n"
        "const struct cuvil_expectation *cuvil_expects(void) { return &expectation; }\n"
    )


def _spec(port: Port) -> TensorSpec:
    return TensorSpec(port.name, port.kind, tuple(map(_extent, port.type.shape)))


def _extent(extent: Dim) -> int | str:
    return str(extent) if extent.constant is None else extent.constant


def _version() -> str:
    return "int32_t cuvil_abi_version(void) { return CUVIL_ABI_VERSION; }\n"
