"""EventNote → core/v1 Event, and which notes are news.

The name of an Event is made of what it says, so that a controller that was killed and says it again finds the former
Event and counts it up instead of writing a second one.
"""

import hashlib
from collections import OrderedDict
from datetime import datetime

from cuvil_operator.conventions import FIELD_MANAGER
from cuvil_operator.gateways.protocols import Document, EventNote

MESSAGE_LIMIT = 1024
"""Bytes of an Event's message."""
QUIET_SECONDS = 600.0
"""An equal note within this time is not written again."""
LEDGER_SIZE = 4096


class EventLedger:
    """The notes of the last minutes, bounded."""

    def __init__(self) -> None:
        self._said: OrderedDict[str, float] = OrderedDict()

    def is_news(self, note: EventNote, now: float) -> bool:
        """Say whether the note was not said within QUIET_SECONDS, and remember it; `now` is monotonic."""
        name = _name(note)
        if now - self._said.get(name, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._said[name] = now
        self._said.move_to_end(name)
        if len(self._said) > LEDGER_SIZE:
            self._said.popitem(last=False)
        return True

    def forget(self, note: EventNote) -> None:
        """Let the note be news again: writing it failed."""
        self._said.pop(_name(note), None)


def _name(note: EventNote) -> str:
    meta = note.regarding["metadata"]
    said = "\0".join((str(meta.get("uid", "")), note.type.value, note.reason, note.message))
    return f"{str(meta['name'])[:200]}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def event_document(note: EventNote, now: datetime) -> Document:
    """Give the Event of a note that is said for the first time."""
    meta = note.regarding["metadata"]
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": meta["namespace"], "name": _name(note)},
        "involvedObject": {
            "apiVersion": note.regarding["apiVersion"],
            "kind": note.regarding["kind"],
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": str(meta.get("uid", "")),
            "resourceVersion": str(meta.get("resourceVersion", "")),
        },
        "type": note.type.value,
        "reason": note.reason,
        "message": note.message.encode()[:MESSAGE_LIMIT].decode(errors="ignore"),
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
        "reportingInstance": FIELD_MANAGER,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


def repeat_patch(before: Document, again: Document) -> Document:
    """Give the merge patch that counts a repeated Event."""
    return {"count": int(before.get("count") or 1) + 1, "lastTimestamp": again["lastTimestamp"]}
