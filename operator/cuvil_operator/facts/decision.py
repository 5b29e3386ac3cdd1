"""What was decided and why, and how the acts went."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from cuvil_operator.api import CuvilModelStatus
from cuvil_operator.conventions import ConditionType, Phase, Reason
from cuvil_operator.facts.actions import Action


@dataclass(frozen=True, slots=True)
class Said:
    """A condition that the decision has an opinion on; times and generation are added by status."""

    type: ConditionType
    status: str
    """True, False or Unknown."""
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One turn of one CuvilModel."""

    rule: str
    """Name of the rule that decided."""
    phase: Phase
    reason: Reason
    message: str
    """One sentence for people."""
    memory: CuvilModelStatus
    """The facts that must outlive the controller; phase, conditions and columns in it are filled in by status."""
    actions: tuple[Action, ...] = ()
    """In order; what follows the first that fails waits for the next turn. None of them is what `memory` rests on."""
    conditions: tuple[Said, ...] = ()
    revision: str | None = None
    """That the spec asks for; None while it is not known."""
    requeue_after: timedelta | None = None
    """None: only an event or the slow resync wakes it. Zero: at once."""


class OutcomeKind(Enum):
    """How an act ended."""

    UNCHANGED = "Unchanged"
    """What is there is what should be; nothing was written."""
    WRITTEN = "Written"
    FAILED = "Failed"
    """The cluster refused or was away; looked at again next turn."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one act of a decision went."""

    action: Action
    kind: OutcomeKind
    message: str = ""
    """One sentence where it failed."""
