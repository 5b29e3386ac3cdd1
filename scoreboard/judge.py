"""One case → its Outcome: the suite's own comparison decides."""

import unittest
import warnings

from cuvil_core.errors import CuvilError, InternalError
from scoreboard.backend import CompilerFaultError, RefusedError
from scoreboard.outcome import Outcome, Verdict

LENGTH = 600
"""Characters of a reason that are kept."""


def judged(case: str, test: tuple[type[unittest.TestCase], str]) -> Outcome:
    """Run the suite's test and name what came of it."""
    holder, name = test
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(holder(name), name)()
    except AssertionError as fault:
        return Outcome(case, Verdict.WRONG, _line(fault))
    except RefusedError as fault:
        return Outcome(case, Verdict.REFUSED, _line(fault))
    except InternalError as fault:
        return Outcome(case, Verdict.CRASHED, _line(fault))
    except CuvilError as fault:
        return Outcome(case, Verdict.REFUSED, f"{type(fault).__name__}: {_line(fault)}")
    except (CompilerFaultError, unittest.SkipTest, Exception) as fault:
        return Outcome(case, Verdict.CRASHED, f"{type(fault).__name__}: {_line(fault)}")
    return Outcome(case, Verdict.RIGHT)


def _line(fault: BaseException) -> str:
    return " ".join(str(fault).split())[:LENGTH]
