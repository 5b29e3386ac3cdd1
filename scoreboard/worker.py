"""Runs cases: names on standard input, one Outcome a line on standard output. Cannot import the reference room."""

import sys
import unittest
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

FORBIDDEN = "cuvil_core.reference"
Case = tuple[type[unittest.TestCase], str]


class _NoReference:
    """An import hook: numbers come from compiled code alone."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise ImportError for the reference room; None lets others look for the rest."""
        if name == FORBIDDEN or name.startswith(FORBIDDEN + "."):
            raise ImportError(f"{name} must not answer for compiled code")
        return None


def cases(level: int) -> dict[str, Case]:
    """`KIND/name` → the suite's own test of every CPU case."""
    from onnx.backend.test import BackendTest

    from scoreboard.backend import CuvilBackend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = BackendTest(CuvilBackend(level), __name__)
    found: dict[str, Case] = {}
    for kind, holder in suite.test_cases.items():
        for name in dir(holder):
            if name.startswith("test_") and name.endswith("_cpu"):
                label = kind.removeprefix("OnnxBackend").removesuffix("Test").removesuffix("Model")
                found[f"{label}/{name.removesuffix('_cpu')}"] = holder, name
    return found


def main() -> None:
    """Run each case that is named; `list` prints the names."""
    sys.meta_path.insert(0, _NoReference())
    known = cases(int(sys.argv[1]))
    if sys.argv[2:] == ["list"]:
        print("\n".join(sorted(known)))
        return
    from scoreboard.judge import judged

    for line in sys.stdin:
        print(judged(line.strip(), known[line.strip()]).to_json(), flush=True)


if __name__ == "__main__":
    main()
