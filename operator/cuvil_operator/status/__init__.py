"""What people read: phase, conditions, columns, the rollback's dossier.

Holds: the merge of a decision and its outcomes into the next status. Takes (Observed, Decision, Outcomes) → gives the
status to write. Must not decide, nor write.
"""
