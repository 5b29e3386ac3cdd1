"""Applies a table of rules to every op until nothing changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cuvil_core.errors import InternalError
from cuvil_core.ir import Graph, Op, Provenance, Rules, Value
from cuvil_core.rewriting.edit import Editor, next_name, remove_unused, with_operands
from cuvil_core.rewriting.facts import Facts
from cuvil_core.rewriting.rule import Note, Refused, Rule

MAX_SWEEPS = 32
"""A table that still changes the graph after so many sweeps goes round in circles."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass gives."""

    graph: Graph
    changed: bool
    notes: tuple[Note, ...] = ()


def apply_rules(graph: Graph, table: Sequence[Rule], rules: Rules) -> PassResult:
    """Sweep forward over the ops, first rule that matches wins, until a sweep changes nothing.

    What a rewrite leaves unused is removed. Refusals of the last sweep become notes. InternalError where the table
    does not come to rest.
    """
    changed = False
    for _ in range(MAX_SWEEPS):
        result = _sweep(graph, table, rules)
        if not result.changed:
            return PassResult(graph, changed, result.notes)
        graph, changed = remove_unused(result.graph), True
    raise InternalError(f"The rules {', '.join(rule.name for rule in table)} do not come to rest; report this.")


def _sweep(graph: Graph, table: Sequence[Rule], rules: Rules) -> PassResult:
    facts = Facts.of(graph)
    editor = Editor(rules, facts, next_name(graph))
    replaced: dict[Value, Value] = {}
    notes: list[Note] = []
    for op in graph.ops:
        current = with_operands(op, replaced)
        facts.add(current)
        values = _first(current, table, facts, editor, notes)
        if values is None:
            editor.keep(current)
            continue
        for old, new in zip(op.results, values, strict=True):
            replaced[old] = new
            facts.use_counts[new] = facts.uses(new) + facts.uses(old)
    outputs = tuple(replaced.get(value, value) for value in graph.outputs)
    rewritten = replace(graph, ops=tuple(editor.ops), outputs=outputs)
    return PassResult(rewritten, bool(replaced), tuple(notes))


def _first(op: Op, table: Sequence[Rule], facts: Facts, editor: Editor, notes: list[Note]) -> tuple[Value, ...] | None:
    for rule in table:
        editor.provenance = _marked(op.provenance, rule.name)
        answer = rule.apply(op, facts, editor)
        if isinstance(answer, Refused):
            notes.append(Note(rule.name, op.provenance, answer.reason))
        elif answer is not None:
            return answer
    return None


@lru_cache(maxsize=1 << 12)
def _marked(origin: Provenance, name: str) -> Provenance:
    """The origin with the rule in its path, each rule named once; cached, as every rule asks for every op."""
    path = origin.path
    return origin if name in path.split("/") else replace(origin, path=f"{path}/{name}".strip("/"))
