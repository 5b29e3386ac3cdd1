"""The one error of this package.

ClusterError        the machine lacks something, or a program failed; the message is a sentence that ends in the cure
└── CommandFailed   a short-lived program ended with a non-zero status
"""

from __future__ import annotations


class ClusterError(Exception):
    """Something that the person at the terminal can cure; printed as one sentence, without a traceback."""


class CommandFailed(ClusterError):
    """A short-lived program failed; `output` holds the end of what it printed."""

    def __init__(self, command: str, status: int, output: str) -> None:
        self.output = output
        last = output.strip().splitlines()[-12:]
        super().__init__(f"{command} ended with status {status}: " + "\n    ".join(last))
