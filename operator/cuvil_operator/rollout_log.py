"""What happened to a CuvilModel, as lines of the log: one for each Event, and one for a phase that changed without one.

    vision/resnet18 revision=0123456789ab phase=Progressing reason=StepReached: step 1/3: 25% of the traffic is on …

A turn without either writes nothing.
"""

import logging
import re

from cuvil_operator.api import CuvilModelStatus
from cuvil_operator.facts import Decision, EmitEvent, ModelKey

log = logging.getLogger(__name__)

LIMIT = 1000
"""Characters of a message."""


class RolloutLog:
    """Writes the lines, and none twice in a row: an act that fails is decided, and told, again in each turn."""

    def __init__(self) -> None:
        self._last: dict[ModelKey, tuple[str, ...]] = {}

    def tell(self, key: ModelKey, before: CuvilModelStatus, after: CuvilModelStatus, decision: Decision) -> None:
        """Log what a turn decided, once its status is written."""
        told = [(one.reason.value, one.message) for one in decision.actions if isinstance(one, EmitEvent)]
        if not told and after.phase != before.phase:
            told = [(decision.reason.value, after.message or decision.message)]
        head = f"{key} revision={_revision(before, after, decision)} phase={after.phase}"
        lines = tuple(f"{head} reason={reason}: {_plain(message)}" for reason, message in told)
        for line in lines:
            if line not in self._last.get(key, ()):
                log.info("%s", line)
        if lines:
            self._last[key] = lines

    def forget(self, key: ModelKey) -> None:
        """Drop what was kept of a model that is gone."""
        self._last.pop(key, None)


def _revision(before: CuvilModelStatus, after: CuvilModelStatus, decision: Decision) -> str:
    """Give what is rolled back in a turn that is about that, else what the spec asks for; `-` while that is unknown."""
    if after.rollback is not None and after.rollback != before.rollback:
        return after.rollback.revision
    return decision.revision or "-"


def _plain(message: str) -> str:
    """Give one printable line. A URL may carry a password or a signed query, which a log must not keep."""
    bare = re.sub(r"(://[^\s?]*)\?\S*", r"\1?…", re.sub(r"://[^\s/?#]*@", "://", message))
    line = " ".join("".join(one if one.isprintable() else " " for one in bare).split())
    return line if len(line) <= LIMIT else f"{line[: LIMIT - 2]} …"
