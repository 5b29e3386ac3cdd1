"""What to rewrite and in which order: one pass a file, `pipeline` the ordered list by optimization level.

Takes a verified Graph and a level → gives a faster Graph of the same meaning, and notes on what was left and why.
Each pass is a frozen dataclass whose docstring draws before → after; it says what it `requires` and `ensures`, and the
pipeline checks both, with the verifier between passes.
Must not know layouts, schedules, kernels or machines: those are decisions of `scheduling`.
"""

from cuvil_core.passes.pipeline import PIPELINES, run, run_passes
from cuvil_core.passes.properties import Pass, Property

__all__ = ["PIPELINES", "Pass", "Property", "run", "run_passes"]
