"""What a rule is: an op it looks at, a reason to leave it, or values in place of its results."""

from dataclasses import dataclass
from typing import Protocol

from cuvil_core.ir import Op, Provenance, Value
from cuvil_core.rewriting.edit import Editor
from cuvil_core.rewriting.facts import Facts


@dataclass(frozen=True, slots=True)
class Refused:
    """The pattern was there, but the rule may not be applied; the reason is a clause."""

    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a pass left undone and why; `cuvil inspect` prints it."""

    origin: str
    """The pass or rule."""
    provenance: Provenance
    text: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.provenance}: {self.text}"


class Rule(Protocol):
    """One rewrite. `apply` emits new ops through the editor only when it gives values."""

    @property
    def name(self) -> str:
        """The rule's name for notes and provenance."""
        ...

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        """Values in place of the op's results; Refused with a reason; None where the pattern is not there."""
        ...
