"""The proof that an artifact computes its source model, fast enough.

Holds: seeded inputs, the oracle (ONNX Runtime, or a golden file), the comparison, the stopwatch.
Takes a loaded artifact and its source model → gives a ValidationReport with notes; decides nothing else.
Must not compile or fetch.
"""

from cuvil_core.validate.check import Checked, Limits, check
from cuvil_core.validate.golden import read_golden
from cuvil_core.validate.oracle import Oracle
from cuvil_core.validate.speed import Latency, measure, measure_pair

__all__ = ["Checked", "Latency", "Limits", "Oracle", "check", "measure", "measure_pair", "read_golden"]
