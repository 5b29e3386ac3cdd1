"""When a Job that failed for want of infrastructure is tried again.

    delay(n) = min(10 s · 2^(n − 1), 5 min) after the n-th failure: 10, 20, 40, 80, 160, 300, 300 … seconds

No jitter: failures of one registry come from one Job per key, not from a herd.
"""

from datetime import timedelta

FIRST = timedelta(seconds=10)
LONGEST = timedelta(minutes=5)
STALLED_AFTER = 5
"""Failures after which people are told (Stalled); the tries go on."""


def delay(failures: int) -> timedelta:
    """Give the wait after the `failures`-th failure in a row, failures ≥ 1."""
    # 2**5 passes LONGEST already; the cap keeps the power small for any count
    return min(FIRST * (1 << min(failures - 1, 5)), LONGEST)
