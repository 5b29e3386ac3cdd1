"""The command line as data."""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cuvil_core.cli.sources import DEFAULT_MAX_BYTES
from cuvil_core.errors import InputError
from cuvil_core.version import VERSION

MOST_RUNS = 10_000_000
EXAMPLES = """examples:
  cuvil compile model.onnx -o model.cuvil
  cuvil verify model.cuvil --model model.onnx
  cuvil run model.cuvil --inputs inputs.npz --output outputs.npz
  cuvil bench model.cuvil --model model.onnx
  cuvil doctor

exit codes: 0 good, 2 usage, 10 bad model, 11 unsupported op, 12 wrong numbers, 13 too slow, 14 too large, 15 timeout,
16 bad artifact, 17 unsupported target, 18 other digest, 19 not found, 20 infrastructure (try again), 70 fault of Cuvil
"""


class Misused(Exception):
    """A command line that cannot be read; `usage` is what people are shown before the sentence."""

    def __init__(self, fault: InputError, usage: str) -> None:
        super().__init__(str(fault))
        self.fault, self.usage = fault, usage


class Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process: the error may have to be told as JSON."""

    def error(self, message: str) -> NoReturn:
        """Raise Misused."""
        raise Misused(InputError(f"{message}; see `{self.prog} --help`"), self.format_usage())

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or version. Raises OSError, which argparse would hide."""
        print(message, end="", file=file, flush=True)


def manner_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Give how to speak (`json`, `quiet`, `debug`, `termination_log`) of a command line that is wrong elsewhere."""
    parser = Parser(add_help=False)
    _common(parser)
    try:
        return parser.parse_known_args(arguments)[0]
    except Misused:
        return parser.parse_args([])


def build_parser() -> Parser:
    """Give the parser; `command` of its result names the command."""
    parser = Parser(
        prog="cuvil",
        description="Compile models, prove what was compiled, run it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"cuvil {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, describe, fill in COMMANDS:
        one = commands.add_parser(name, help=describe, description=describe)
        fill(one)
        _common(one)
    return parser


def _common(parser: Parser) -> None:
    group = parser.add_argument_group("how to speak")
    group.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")
    group.add_argument("--quiet", "-q", action="store_true", help="no progress")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    group.add_argument("--termination-log", type=_path, metavar="FILE", help="write how it ended as one line of JSON")


def _fetching(parser: Parser) -> None:
    group = parser.add_argument_group("fetching")
    group.add_argument("--insecure-registry", action="store_true", help="plain HTTP to registries")
    group.add_argument("--max-bytes", type=_positive(int), default=DEFAULT_MAX_BYTES, help="largest file taken")


def _compile(parser: Parser) -> None:
    parser.add_argument("model", type=_named, help="path or URI (file, http, https, oci) of the model")
    parser.add_argument("--output", "-o", type=_path, metavar="FILE", help="artifact file (default: NAME.cuvil)")
    parser.add_argument(
        "--push", type=_named, metavar="HOST/REPOSITORY", help="store the artifact in a registry instead"
    )
    parser.add_argument("--target", default="native", help="native or x86_64-cpu (default: native)")
    parser.add_argument("--precision", default="fp32", help="fp32_strict or fp32 (default: fp32)")
    parser.add_argument("--opt-level", type=int, metavar="N", help="0 to 3 (default: CUVIL_IR_OPT_LEVEL or 2)")
    parser.add_argument("--format", default="onnx", help="format of the model (default: onnx)")
    parser.add_argument(
        "--input",
        type=_json_object,
        action="append",
        default=[],
        metavar="JSON",
        help='names and bounds, as {"name": "x", "shape": ["N", 3], "bounds": {"N": [1, 8]}}; may be repeated',
    )
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the model file must be")
    parser.add_argument("--no-cache", action="store_true", help="compile even if the cache has it")
    _fetching(parser)


def _verify(parser: Parser) -> None:
    parser.add_argument("artifact", type=_named, help="file, or HOST/REPOSITORY@sha256:…")
    parser.add_argument("--model", type=_named, help="path or URI of the source model")
    parser.add_argument(
        "--golden", type=_named, help="path or URI of an npz with inputs and outputs, instead of the model"
    )
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the artifact file must be")
    parser.add_argument("--model-sha256", type=_digest, metavar="HEX", help="what the model file must be")
    parser.add_argument("--rtol", type=_tolerance, default=1e-3, help="relative tolerance (default: 1e-3)")
    parser.add_argument("--atol", type=_tolerance, default=1e-4, help="tolerance times magnitude (default: 1e-4)")
    parser.add_argument("--latency-limit-ms", type=_positive(float), metavar="MS", help="for the median call")
    parser.add_argument("--baseline", type=_named, metavar="ARTIFACT", help="artifact timed in turn with this one")
    parser.add_argument("--max-ratio", type=_positive(float), default=1.05, help="of the baseline's time (1.05)")
    parser.add_argument("--report", type=_path, metavar="FILE", help="write the whole report as JSON")
    _timing(parser)
    _fetching(parser)


def _timing(parser: Parser) -> None:
    parser.add_argument("--runs", type=_positive(int, MOST_RUNS), default=500, help="timed calls (default: 500)")
    parser.add_argument("--warm-up", type=_positive(int, MOST_RUNS), default=100, help="calls before (default: 100)")


def _run(parser: Parser) -> None:
    parser.add_argument("artifact", type=_named, help="file, or HOST/REPOSITORY@sha256:…")
    parser.add_argument("--inputs", type=_path, metavar="NPZ", help="arrays named after the inputs")
    parser.add_argument("--output", "-o", type=_path, metavar="NPZ", help="where the outputs go")
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the artifact file must be")
    _random(parser)
    _fetching(parser)


def _random(parser: Parser) -> None:
    parser.add_argument("--seed", type=_seed, default=11, help="of random inputs, where none are given (default: 11)")
    parser.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="shape of a random input (default: the smallest that works); may be repeated",
    )


def _bench(parser: Parser) -> None:
    parser.add_argument("artifact", type=_named, help="file, or HOST/REPOSITORY@sha256:…")
    parser.add_argument("--model", type=_named, help="source model: ONNX Runtime on it is timed in turn")
    parser.add_argument("--baseline", type=_named, metavar="ARTIFACT", help="another artifact, timed in turn")
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the artifact file must be")
    parser.add_argument("--variant", type=_named, help="force one of the artifact's instruction-set variants")
    _random(parser)
    _timing(parser)
    _fetching(parser)


def _inspect(parser: Parser) -> None:
    parser.add_argument("artifact", type=_named, help="file, or HOST/REPOSITORY@sha256:…")
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the artifact file must be")
    _fetching(parser)


def _doctor(parser: Parser) -> None:
    parser.add_argument("--compile", action="store_true", help="also compile and run a small C file")


def _resolve(parser: Parser) -> None:
    parser.add_argument("model", type=_named, help="URI of the model")
    parser.add_argument("--sha256", type=_digest, metavar="HEX", help="what the model file must be")
    _fetching(parser)


def _push(parser: Parser) -> None:
    parser.add_argument("file", type=_path, help="artifact or model file")
    parser.add_argument("repository", type=_named, metavar="HOST/REPOSITORY[:TAG]", help="where it goes")
    _fetching(parser)


def _cache(parser: Parser) -> None:
    parser.add_argument("action", choices=("list", "collect", "clear", "path"), help="what to do")


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="print its completion script")


COMMANDS: tuple[tuple[str, str, Callable[[Parser], None]], ...] = (
    ("compile", "Compile a model into one artifact file.", _compile),
    ("verify", "Prove an artifact against its source model: numbers, speed, memory.", _verify),
    ("run", "Run an artifact on arrays or on random inputs.", _run),
    ("bench", "Time an artifact, alone or in turn with ONNX Runtime or another artifact.", _bench),
    ("inspect", "Show what an artifact says of itself, after checking every byte.", _inspect),
    ("doctor", "Check this machine; each finding ends in its cure.", _doctor),
    ("resolve", "Find the digest, size and format of the model behind a URI.", _resolve),
    ("push", "Store an artifact or a model in a registry.", _push),
    ("cache", "List, shrink or clear the cache of compiled artifacts.", _cache),
    ("completion", "Print a completion script for a shell.", _completion),
)


def _json_object(text: str) -> dict[str, Any]:
    try:
        raw = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as fault:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {fault}") from fault
    if not isinstance(raw, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object")
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _named(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the path or name is empty; write one")
    return text


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a file")
    return Path(text)


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from fault
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return seed


def _digest(text: str) -> str:
    plain = text.removeprefix("sha256:").lower()
    if len(plain) != 64 or any(one not in "0123456789abcdef" for one in plain):
        raise argparse.ArgumentTypeError(f"{text!r} is no sha256: 64 hex digits")
    return plain


def _tolerance(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance: a number of at least 0")
    return value


def _positive(kind: Callable[[str], Any], most: float = math.inf) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError as fault:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from fault
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text!r} is above {most}")
        return value

    return read


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from fault


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, extents = text.rpartition("=")
    try:
        shape = tuple(int(one) for one in extents.replace("x", ",").split(",") if one)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: write NAME=1,3,224,224") from fault
    if not name or any(one < 1 for one in shape):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: write NAME=1,3,224,224")
    return name, shape
