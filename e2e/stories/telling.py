"""Plays stories one after the other and tells how each ended."""

import time
import traceback
from collections.abc import Callable, Iterable

from e2e.stories.access import StoryError

Story = tuple[int, str, Callable[[], list[str]]]


def tell(
    stories: Iterable[Story],
    what: str,
    say: Callable[[str], None] = print,
    before_last: Callable[[], None] = lambda: None,
) -> bool:
    """Play every story, also after a failure; ends with `WHAT: N of M stories as expected`."""
    told = [_one(number, title, play, say) for number, title, play in stories]
    before_last()
    say("")
    for title, fault in told:
        say(f"as expected      {title}" if fault is None else f"NOT as expected  {title}: {fault}")
    good = sum(fault is None for _, fault in told)
    say(f"{what}: {good} of {len(told)} stories as expected")
    return good == len(told)


def _one(number: int, title: str, play: Callable[[], list[str]], say: Callable[[str], None]) -> tuple[str, str | None]:
    say(f"\n== story {number}: {title} ({time.strftime('%T')})")
    began = time.monotonic()
    fault = None
    try:
        for fact in play():
            say(f"  · {fact}")
    except StoryError as error:
        fault = str(error)
    except Exception as error:
        traceback.print_exc()
        fault = f"{type(error).__name__}: {error}"
    say(f"  {'as expected' if fault is None else 'FAILED: ' + fault} ({time.monotonic() - began:.0f} s)")
    return f"story {number}: {title}", fault
