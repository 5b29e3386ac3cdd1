"""`python -m scoreboard`: run the suite, print the table, end with 1 where anything is wrong or crashed."""

import argparse
import os
import re
import sys
import time
from pathlib import Path

from cuvil_core.version import VERSION
from scoreboard.board import names, play
from scoreboard.outcome import Outcome, Verdict
from scoreboard.page import heading, last_line, report


def main() -> int:
    """Parse the words, play, tell."""
    words = _parser().parse_args()
    cases = [case for case in names(words.level) if re.search(words.only, case)]
    began, done = time.monotonic(), 0

    def tell(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if outcome.verdict in (Verdict.WRONG, Verdict.CRASHED):
            print(f"{outcome.verdict.value}: {outcome.case}: {outcome.reason}", flush=True)
        if done % 100 == 0:
            print(f"… {done} of {len(cases)} after {time.monotonic() - began:.0f} s", flush=True)

    outcomes = play(cases, words.level, words.workers, tell)
    text = report(outcomes, heading(words.level, VERSION, time.strftime("%Y-%m-%d"), " ".join(sys.argv[1:])))
    if words.write is not None:
        words.write.write_text(text)
    if words.json is not None:
        words.json.write_text("".join(outcome.to_json() + "\n" for outcome in outcomes))
    print(text if words.write is None else last_line(outcomes))
    return int(any(outcome.verdict in (Verdict.WRONG, Verdict.CRASHED) for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scoreboard", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose KIND/name holds this pattern")
    parser.add_argument("--level", type=int, default=2, choices=range(4), help="optimization level (2)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one a core)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there instead of printing it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one outcome a line there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
