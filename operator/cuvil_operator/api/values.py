"""Texts of a CuvilModel that stand for exact numbers: percents, durations, days, decimals, times.

A float never appears here: 0.5% is Decimal("0.005"), 800ms is timedelta(milliseconds=800).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

PERCENT_PATTERN = r"^(0|[1-9][0-9]?)(\.[0-9]{1,4})?%$"
DURATION_PATTERN = r"^([0-9]{1,5}(ms|s|m|h)){1,4}$"
DAYS_PATTERN = r"^[1-9][0-9]{0,2}d$"
DECIMAL_PATTERN = r"^[0-9]{1,6}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?$"

_UNITS = {
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}


def parse_percent(text: str) -> Decimal:
    """Read `0.5%` as the share 0.005; at least 0, below 1."""
    if not re.fullmatch(PERCENT_PATTERN, text):
        raise ValueError(f"{text!r} is no percent; write a number below 100 with at most four decimals, such as 0.5%")
    return Decimal(text.removesuffix("%")).scaleb(-2)


def format_percent(share: Decimal) -> str:
    """Give the shortest text that parse_percent reads as the same share."""
    return f"{_plain(share.scaleb(2))}%"


def parse_duration(text: str) -> timedelta:
    """Read `1h30m`, `15s` or `800ms`; whole milliseconds."""
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is no duration; write whole numbers with ms, s, m or h, such as 800ms or 1h30m")
    return sum((int(n) * _UNITS[unit] for n, unit in re.findall(r"([0-9]+)(ms|s|m|h)", text)), timedelta())


def format_duration(span: timedelta) -> str:
    """Give the text with the largest units first that parse_duration reads as the same span."""
    parts = []
    for unit, size in _UNITS.items():
        count, span = divmod(span, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def parse_days(text: str) -> timedelta:
    """Read `30d`."""
    if not re.fullmatch(DAYS_PATTERN, text):
        raise ValueError(f"{text!r} is no number of days; write for instance 30d")
    return timedelta(days=int(text.removesuffix("d")))


def format_days(span: timedelta) -> str:
    """Give `30d`."""
    return f"{span.days}d"


def parse_decimal(text: str) -> Decimal:
    """Read `1e-3` or `0.001` exactly."""
    if not re.fullmatch(DECIMAL_PATTERN, text):
        raise ValueError(f"{text!r} is no decimal; write for instance 1e-3 or 0.001")
    return Decimal(text)


def format_decimal(number: Decimal) -> str:
    """Give the shorter of plain digits and the exponent form: 0.01, 1e-3."""
    return min(_plain(number), f"{number.normalize():e}".replace("e+", "e"), key=len)


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time; the zone must be named."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; write for instance 2026-01-31T12:00:00Z")
    return moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """Give RFC 3339 in UTC; microseconds only when there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class TextForm:
    """How one kind of exact value is written in YAML."""

    name: str
    parse: Callable[[str], Any]
    format: Callable[[Any], str]


PERCENT = TextForm("percent", parse_percent, format_percent)
DURATION = TextForm("duration", parse_duration, format_duration)
DAYS = TextForm("days", parse_days, format_days)
DECIMAL = TextForm("decimal", parse_decimal, format_decimal)
TIME = TextForm("time", parse_time, format_time)

Percent = Annotated[Decimal, PERCENT]
"""A share in [0, 1), written as `0.5%`."""
Duration = Annotated[timedelta, DURATION]
"""A span of whole milliseconds, written as `1h30m`."""
Days = Annotated[timedelta, DAYS]
"""A span of whole days, written as `30d`."""
Number = Annotated[Decimal, DECIMAL]
"""An exact decimal, written as `1e-3`."""
Time = Annotated[datetime, TIME]
"""A moment in UTC, written as RFC 3339."""
