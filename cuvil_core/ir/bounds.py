"""Arithmetic of intervals whose ends may be unknown: what `Dim.bounds` is made of."""

Interval = tuple[int | None, int | None]
"""Least and greatest value; None where there is none or it is not known."""


def extremum_bounds(kind: str, parts: list[Interval]) -> Interval:
    """max: the greatest known lower end, and an upper end only when all have one; min the other way round."""
    lows = [low for low, _ in parts if low is not None]
    highs = [high for _, high in parts if high is not None]
    if kind == "max":
        return max(lows, default=None), max(highs) if len(highs) == len(parts) else None
    return min(lows) if len(lows) == len(parts) else None, min(highs, default=None)


def quotient_bounds(numerator: Interval, denominator: Interval) -> Interval:
    """Of numerator // denominator; nothing is known unless the denominator is positive."""
    low, high = numerator
    least, greatest = denominator
    if least is None or least <= 0:
        return None, None
    lower = None if low is None else (low // least if low < 0 else (0 if greatest is None else low // greatest))
    upper = None if high is None else (high // least if high >= 0 else (-1 if greatest is None else high // greatest))
    return lower, upper
