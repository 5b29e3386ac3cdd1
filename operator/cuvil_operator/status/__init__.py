"""What people read: phase, conditions, columns.

Holds: the merge of a decision and its outcomes into the next status. Takes (Observed, Decision, Outcomes) → gives the
status to write. Must not decide, nor write.
"""

from cuvil_operator.status.merge import next_status

__all__ = ["next_status"]
