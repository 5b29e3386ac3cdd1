"""What decides the bytes of an artifact, as one name."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256

from cuvil_core.contract import CompileRequest

LAYOUT = 1
"""Raised when artifacts or this key change their meaning, so that old entries are never read."""


def cache_key(model_sha256: str, request: CompileRequest, compiler: str, features: Iterable[str] = ()) -> str:
    """Give 64 hex digits.

    `compiler` names the compiler's code exactly (version and digest of its sources). `features` are this CPU's flags:
    they count for target `native` only, whose code runs on such CPUs alone. Names of CPUs never count, since virtual
    machines misname them.
    """
    parts = {
        "layout": LAYOUT,
        "model": model_sha256,
        "request": asdict(request),
        "compiler": compiler,
        "features": sorted(features) if request.target == "native" else [],
    }
    return sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
