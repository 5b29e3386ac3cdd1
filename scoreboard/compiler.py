"""Compiles models for a running process: one JSON request a line on standard input, one JSON answer a line.

Request: `{"model": path, "artifact": path, "level": 0 … 3}`. Answer: `{}`, or `{"refused": sentence}`, or
`{"crashed": sentence}`.
"""

import json
import sys
from pathlib import Path

from cuvil_core.compile import compile_model
from cuvil_core.errors import CuvilError, InternalError
from cuvil_core.front import make_request


def answer(request: dict[str, object]) -> dict[str, str]:
    """Compile one model for this machine at `fp32_strict`."""
    try:
        source = Path(str(request["model"]))
        wanted = make_request("native", "fp32_strict", None, int(str(request["level"])))
        Path(str(request["artifact"])).write_bytes(compile_model(source, wanted))
    except InternalError as fault:
        return {"crashed": str(fault)}
    except CuvilError as fault:
        return {"refused": f"{type(fault).__name__}: {fault}"}
    except Exception as fault:  # what is no error of Cuvil's counts against it
        return {"crashed": repr(fault)}
    return {}


def main() -> None:
    """Answer until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
