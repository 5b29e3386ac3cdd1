"""What a call of a library takes and gives, as one text that the compiler writes and the runtime compares."""

import json
from collections.abc import Iterable, Mapping

from cuvil_core.contract.manifest import TensorSpec

Range = tuple[int, int | None]
"""Least and greatest extent; None: no greatest."""


def signature_text(symbols: Mapping[str, Range], inputs: Iterable[TensorSpec], outputs: Iterable[TensorSpec]) -> str:
    """Give canonical ASCII on one line: all on which the code relies and that an artifact's manifest also states."""
    whole = {
        "symbols": [[name, least, greatest] for name, (least, greatest) in symbols.items()],
        "inputs": [[one.name, one.dtype, list(one.shape)] for one in inputs],
        "outputs": [[one.name, one.dtype, list(one.shape)] for one in outputs],
    }
    return json.dumps(whole, separators=(",", ":"))
