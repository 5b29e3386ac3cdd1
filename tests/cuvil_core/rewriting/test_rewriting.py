"""Patterns, the driver, and rebuilding."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from cuvil_core.errors import InternalError
from cuvil_core.ir import Op, Value, parse_graph, print_graph
from cuvil_core.ops import RULES
from cuvil_core.rewriting import (
    AnyValue,
    Constant,
    Editor,
    Facts,
    Prim,
    Refused,
    apply_rules,
    match,
    remove_unused,
    renumber,
)

GRAPH = parse_graph("""graph {
  symbol N in 1..
  input %0 "x" : float32[N]
  %1 = constant {value = payload(float32, scalar, [3.0])} : float32[]
  %2 = broadcast_to %1 {shape = <N>} : float32[N]
  %3 = add %2, %0 : float32[N]
  %4 = neg %3 : float32[N]
  %5 = neg %4 : float32[N]
  %6 = exp %0 : float32[N]
  output %5 "y"
}
""")
ADD, SECOND_NEG = GRAPH.ops[2], GRAPH.ops[4]


def test_patterns_bind_names() -> None:
    """A pattern is matched from its last op backwards; ops that commute match in either order."""
    facts = Facts.of(GRAPH)
    found = match(Prim("neg", Prim("neg", Prim("add", AnyValue("x"), Constant("c"), bind="sum"))), SECOND_NEG, facts)
    assert found is not None
    assert (found["x"], found["sum"]) == (GRAPH.inputs[0], ADD.result)
    assert facts.scalar(found["c"]) == 3.0


def test_a_name_used_twice_must_be_one_value() -> None:
    """x in two places of a pattern is the same value."""
    assert match(Prim("add", AnyValue("x"), AnyValue("x")), ADD, Facts.of(GRAPH)) is None


def test_other_shapes_do_not_match() -> None:
    """Another op, a constant that is none, another number of operands: no match."""
    facts = Facts.of(GRAPH)
    for pattern in (Prim("mul"), Prim("add", Constant("a"), Constant("b")), Prim("add", AnyValue("x"))):
        assert match(pattern, ADD, facts) is None


@dataclass(frozen=True)
class _DoubleNegation:
    name: ClassVar[str] = "double-negation"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | Refused | None:
        found = match(Prim("neg", Prim("neg", AnyValue("x"))), op, facts)
        return None if found is None else (found["x"],)


@dataclass(frozen=True)
class _NeverExp:
    name: ClassVar[str] = "never-exp"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> Refused | None:
        return Refused("exp is left alone") if op.name == "exp" else None


@dataclass(frozen=True)
class _Restless:
    name: ClassVar[str] = "restless"

    def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
        return (editor.emit("add", *reversed(op.operands)),) if op.name == "add" else None


def test_the_driver_rewrites_and_drops_what_is_unused() -> None:
    """Uses follow the new value, and the old ops go."""
    result = apply_rules(GRAPH, (_DoubleNegation(),), RULES)
    assert result.changed
    assert [op.name for op in result.graph.ops] == ["constant", "broadcast_to", "add"]
    assert result.graph.outputs == (ADD.result,)


def test_refusals_become_notes() -> None:
    """A rule that refuses changes nothing and leaves its reason."""
    result = apply_rules(GRAPH, (_NeverExp(),), RULES)
    assert not result.changed and result.graph is GRAPH
    assert [note.text for note in result.notes] == ["exp is left alone"]


def test_rules_that_never_rest_are_an_error() -> None:
    """A table that goes round in circles is stopped."""
    with pytest.raises(InternalError, match="restless do not come to rest"):
        apply_rules(GRAPH, (_Restless(),), RULES)


def test_new_ops_name_the_rule_in_their_origin() -> None:
    """The path of an origin says which rules an op went through."""

    @dataclass(frozen=True)
    class Square:
        name: ClassVar[str] = "square"

        def apply(self, op: Op, facts: Facts, editor: Editor) -> tuple[Value, ...] | None:
            return (editor.emit("mul", op.operands[0], op.operands[0]),) if op.name == "neg" else None

    result = apply_rules(GRAPH, (Square(),), RULES)
    assert {op.provenance.path for op in result.graph.ops if op.name == "mul"} == {"square"}


def test_renumbering_follows_definition() -> None:
    """Names are 0, 1, … in order, and the text is the same however the graph came about."""
    assert [value.name for value in renumber(remove_unused(GRAPH)).values()] == [str(at) for at in range(6)]
    assert print_graph(renumber(GRAPH)) == print_graph(GRAPH)
