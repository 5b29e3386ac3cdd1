"""A Program as C: kernels in several files, and one file with the functions of `cuvil.h`.

The host file holds sizes and guards as expressions over the symbols, the plan of the arena as tables, and one line a
launch. Compiled with CUVIL_PROFILE it also counts nanoseconds a launch.
"""

from collections.abc import Iterator, Sequence

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.codegen.c.kernels import PRELUDE, emit_kernel, prototypes
from cuvil_core.codegen.c.program_arena import arena_text
from cuvil_core.codegen.c.program_sizes import checked_sizes, dims_of
from cuvil_core.program import Launch, Program, Role, lifetimes

UNIT_BYTES = 48 << 10
"""Text of kernels a file, about: small enough that all cores have work, large enough that headers do not dominate."""
MIN_UNITS = 2


def emit_program(program: Program, isa: str = "avx512") -> dict[str, str]:
    """File name → C text; equal programs give equal text."""
    texts = [emit_kernel(one.kernel, one.schedule, isa) for one in program.kernels]
    files = {f"kernels{number}.c": PRELUDE + "\n".join(unit) for number, unit in enumerate(_units(texts))}
    files["program.c"] = host_text(program)
    return files


def host_text(program: Program) -> str:
    """The file with `cuvil_prepare` and `cuvil_run`."""
    symbols = {name: f"symbols[{position}]" for position, name in enumerate(program.symbols)}
    parts = [PRELUDE, *(prototypes(one.kernel) for one in program.kernels), arena_text(program, symbols)]
    parts += [_prepare(program, symbols), _run(program), _profile(program), _version()]
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
    lines = [
        "int32_t cuvil_prepare(const int64_t *symbols, int64_t *arena_bytes, int64_t *output_dims)",
        "{",
        "    (void)symbols, (void)output_dims;",
        *checked_sizes(program, dims_of(program)),
    ]
    for position, guard in enumerate(program.guards):
        left, right = dim_text(guard.left, symbols), dim_text(guard.right, symbols)
        lines.append(f"    if (!({left} {guard.relation.value} {right})) return {position + 1};")
    extents = [extent for port in program.outputs for extent in port.type.shape]
    lines += [f"    output_dims[{at}] = {dim_text(extent, symbols)};" for at, extent in enumerate(extents)]
    lines += [
        "    int64_t offsets[PLACES];",
        "    *arena_bytes = place_buffers(symbols, offsets);",
        f"    return *arena_bytes <= LARGEST ? 0 : {len(program.guards) + 1};",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _run(program: Program) -> str:
    lines = [
        "int32_t cuvil_run(const int64_t *symbols, const void *const *inputs, void *const *outputs,",
        "                  const void *weights, void *arena, cuvil_pool *pool)",
        "{",
        "    (void)symbols, (void)inputs, (void)outputs, (void)weights, (void)arena;",
        "    int64_t offsets[PLACES];",
        "    recall_offsets(symbols, offsets);",
        "    if (pool) pool->enter(pool);",
    ]
    pointers = _pointers(program)
    by_name = {one.kernel.name: one.kernel for one in program.kernels}
    for position, statement in enumerate(program.statements):
        lines += _launch(program, statement, position, pointers, by_name[statement.kernel].symbols)
    lines += ["    if (pool) pool->leave(pool);", "    return 0;", "}"]
    return "\n".join(lines) + "\n"


def _pointers(program: Program) -> dict[str, str]:
    """Buffer name → C expression of its address."""
    found, place = {}, {life.buffer.name: at for at, life in enumerate(lifetimes(program))}
    for buffer in program.buffers:
        match buffer.role:
            case Role.INPUT:
                found[buffer.name] = f"(void *)inputs[{buffer.position}]"
            case Role.OUTPUT:
                found[buffer.name] = f"outputs[{buffer.position}]"
            case Role.WEIGHT:
                found[buffer.name] = f"(char *)weights + INT64_C({buffer.position})"
            case Role.TEMPORARY:
                if buffer.name in place:
                    found[buffer.name] = f"(char *)arena + offsets[{place[buffer.name]}]"
    return found


def _launch(
    program: Program, launch: Launch, position: int, pointers: dict[str, str], names: tuple[str, ...]
) -> Iterator[str]:
    addresses = ", ".join(pointers[name] for name in launch.arguments)
    values = ", ".join(f"symbols[{program.symbols.index(name)}]" for name in names) or "0"
    kernel = launch.kernel
    yield f"    {{ /* {_comment(launch.origin)} */"
    yield f"        void *const buffers[] = {{{addresses}}};"
    yield f"        const int64_t values[] = {{{values}}};"
    yield f"        PROFILE_BEGIN({position})"
    yield f"        const int64_t units = {kernel}_units(values), work = {kernel}_work(values);"
    yield f"        cuvil_launch_kernel(pool, {kernel}, buffers, values, units, work);"
    yield f"        PROFILE_END({position})"
    yield "    }"


def _comment(text: str) -> str:
    """Node names come from the model file: keep what cannot end a comment or a line."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._:+-") else "_" for c in text)
    return plain[:120]


def _profile(program: Program) -> str:
    return (
        "#ifdef CUVIL_PROFILE\n"
        f"CUVIL_EXPORT int64_t *cuvil_profile(int64_t *count) {{ *count = {len(program.statements)}; "
        "return profile_ns; }\n"
        "#endif\n"
    )


def _version() -> str:
    return "int32_t cuvil_abi_version(void) { return CUVIL_ABI_VERSION; }\n"
