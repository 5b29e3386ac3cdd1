"""What became of a case."""

import json
from dataclasses import asdict, dataclass
from enum import Enum


class Verdict(Enum):
    """The four columns."""

    RIGHT = "right"
    REFUSED = "refused"
    """By a named error, before any number was given."""
    WRONG = "wrong"
    """Other numbers, shapes or dtypes than expected."""
    CRASHED = "crashed"
    """The process died, ran out of time, or an error was none of Cuvil's."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case."""

    case: str
    verdict: Verdict
    reason: str = ""

    def to_json(self) -> str:
        """One line."""
        return json.dumps({**asdict(self), "verdict": self.verdict.value})

    @staticmethod
    def of_json(text: str) -> "Outcome":
        """The inverse of `to_json`."""
        raw = json.loads(text)
        return Outcome(raw["case"], Verdict(raw["verdict"]), raw["reason"])
