"""What one query told of one revision: whole counts per pod, or why there are none."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class SourceState(Enum):
    """Whether an answer can be counted. Everything but OK says something of the source, nothing of the canary."""

    OK = "Ok"
    NO_DATA = "NoData"
    """The answer is an empty vector: never scraped, or gone."""
    UNREACHABLE = "Unreachable"
    TIMEOUT = "Timeout"
    SERVER_ERROR = "ServerError"
    """5xx, or an answer that reports an error."""
    BAD_QUERY = "BadQuery"
    """4xx: the query or the address is wrong."""
    MALFORMED = "Malformed"
    """Not what the Prometheus API promises."""
    NOT_A_NUMBER = "NotANumber"
    """NaN, Inf, a negative or an absurdly large counter."""
    UNUSABLE = "Unusable"
    """Series that cannot be counted: no pod label, no bucket at the threshold, buckets that fall."""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Cumulative counters of one pod since its process began."""

    pod: str
    requests: int
    breaches: int
    """Requests that count against the objective; at most `requests`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer to one query for one gate of one revision."""

    query: str
    """As sent."""
    state: SourceState
    at: datetime
    """Time of the evaluation."""
    message: str = ""
    """One sentence where the state is not OK."""
    pods: tuple[PodCounts, ...] = ()
    """In order of name; empty unless the state is OK."""
