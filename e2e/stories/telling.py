"""Plays stories one after the other and tells how each ended."""

import time
import traceback
from collections.abc import Callable, Iterable

from kubernetes.client.exceptions import ApiException

from e2e.stories.access import Access, StoryError
from e2e.stories.killer import NAMESPACE, SELECTOR

Story = tuple[int, str, Callable[[], list[str]]]


def tell(
    stories: Iterable[Story],
    what: str,
    say: Callable[[str], None] = print,
    before_last: Callable[[], None] = lambda: None,
    on_fault: Callable[[], Iterable[str]] = list,
) -> bool:
    """Play every story, also after a failure; ends with `WHAT: N of M stories as expected`.

    `on_fault` gives lines that help to find out why a story failed.
    """
    told = [_one(number, title, play, say, on_fault) for number, title, play in stories]
    before_last()
    say("")
    for title, fault in told:
        say(f"as expected      {title}" if fault is None else f"NOT as expected  {title}: {fault}")
    good = sum(fault is None for _, fault in told)
    say(f"{what}: {good} of {len(told)} stories as expected")
    return good == len(told)


def _one(
    number: int,
    title: str,
    play: Callable[[], list[str]],
    say: Callable[[str], None],
    on_fault: Callable[[], Iterable[str]],
) -> tuple[str, str | None]:
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
    if fault is not None:
        for line in _safely(on_fault):
            say(f"  | {line}")
    return f"story {number}: {title}", fault


def _safely(ask: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return list(ask())
    except Exception as error:  # the cluster may be gone; the other stories are still told
        return [f"nothing more is known: {type(error).__name__}: {error}"]


def last_words(access: Access, lines: int = 30) -> list[str]:
    """Give the end of each controller's log."""
    told = []
    for pod in access.list("v1", "Pod", NAMESPACE, SELECTOR):
        name = pod["metadata"]["name"]
        try:
            said = access.logs(NAMESPACE, name).splitlines()[-lines:]
        except ApiException as fault:
            said = [f"no log: {fault.reason}"]
        told += [f"the end of the log of {NAMESPACE}/{name}:", *(line[:400] for line in said)]
    return told
