"""Who may write: one Lease, held by one controller at a time.

Holds: the election's terms, the Lease document, and the loop that acquires, renews and releases it.
Takes a LeaseStore, a Clock and the Fence → gives leadership, and moves the fence's deadline with every renewal.
Must not know what is written under the Lease.
"""

from cuvil_operator.election.election import Election, LeaseLost
from cuvil_operator.election.lease import LeaseTerms

__all__ = ["Election", "LeaseLost", "LeaseTerms"]
