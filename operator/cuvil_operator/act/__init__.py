"""What was decided becomes what is.

Holds: one short handler for each Action, and the ensuring of a document.
Takes a Look and a Decision → gives one Outcome for each act up to the first that failed.
Must not decide: which acts and in which order is the decision's, what the documents say is render's.
"""

from cuvil_operator.act.performer import Performer

__all__ = ["Performer"]
