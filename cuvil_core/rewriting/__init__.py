"""How graphs are rewritten: patterns, rules that may refuse with a reason, the driver that applies them.

Takes a graph and a table of rules → gives a new graph, whether it changed, and notes on what was refused and why.
Mechanism only: what to rewrite is in `passes`. Must not name any primitive but `constant` and `broadcast_to`, which
patterns look through.
"""

from cuvil_core.rewriting.blocks import in_blocks
from cuvil_core.rewriting.driver import PassResult, apply_rules
from cuvil_core.rewriting.edit import Editor, next_name, remove_unused, renumber
from cuvil_core.rewriting.facts import Facts
from cuvil_core.rewriting.pattern import AnyValue, Constant, Match, Pattern, Prim, match
from cuvil_core.rewriting.rule import Note, Refused, Rule

__all__ = [
    "AnyValue",
    "Constant",
    "Editor",
    "Facts",
    "Match",
    "Note",
    "PassResult",
    "Pattern",
    "Prim",
    "Refused",
    "Rule",
    "apply_rules",
    "in_blocks",
    "match",
    "next_name",
    "remove_unused",
    "renumber",
]
