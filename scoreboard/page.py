"""Outcomes → the table, the reasons, the last line; all as text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import onnx

from scoreboard.outcome import Outcome, Verdict


def last_line(outcomes: Sequence[Outcome]) -> str:
    """`scoreboard: R right, U refused, W wrong, C crashed of N`"""
    count = Counter(outcome.verdict for outcome in outcomes)
    parts = ", ".join(f"{count[verdict]} {verdict.value}" for verdict in Verdict)
    return f"scoreboard: {parts} of {len(outcomes)}"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A Markdown table by class of case."""
    yield "| class | right | refused | wrong | crashed | all |"
    yield "|---|---|---|---|---|---|"
    for kind in sorted({_kind(outcome) for outcome in outcomes}):
        own = [outcome for outcome in outcomes if _kind(outcome) == kind]
        count = Counter(outcome.verdict for outcome in own)
        yield f"| {kind} | {' | '.join(str(count[verdict]) for verdict in Verdict)} | {len(own)} |"


def reasons(outcomes: Sequence[Outcome], verdict: Verdict) -> Iterator[str]:
    """Each reason with its number of cases and one of them; names in quotes and numbers are taken as alike."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.verdict is verdict:
            groups.setdefault(_likened(outcome.reason), []).append(outcome)
    for reason, own in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield f"| {len(own)} | {reason[:160]} | `{own[0].case}` |"


def report(outcomes: Sequence[Outcome], heading: str) -> str:
    """The whole text."""
    lines = [heading, "", *table(outcomes), ""]
    for verdict in (Verdict.WRONG, Verdict.CRASHED, Verdict.REFUSED):
        found = list(reasons(outcomes, verdict))
        if found:
            lines += [f"{verdict.value}:", "", "| cases | reason | such as |", "|---|---|---|", *found, ""]
    return "\n".join([*lines, last_line(outcomes)]) + "\n"


def heading(level: int, version: str, day: str, words: str) -> str:
    """What was run, when, and how to run it again."""
    command = f"python -m scoreboard {words}".strip()
    return (
        "# Coverage\n\n"
        f"The CPU cases of `onnx.backend.test` {onnx.__version__}, compiled by Cuvil {version} at level {level} and "
        "`fp32_strict` for the machine at\nhand, run in processes that cannot import the reference room, compared as "
        f"the suite compares. Written by `{command}`\non {day}; `make scoreboard` writes it anew."
    )


def _kind(outcome: Outcome) -> str:
    return outcome.case.partition("/")[0]


def _likened(reason: str) -> str:
    plain = re.sub(r"Node '[^']*'", "Node", reason)
    return re.sub(r"'[^']*'", "'…'", plain).replace("|", "/")
