"""Text of graphs: printer and parser are inverse."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_core.errors import ModelError
from cuvil_core.ir import (
    Attribute,
    Dim,
    DType,
    Graph,
    Guard,
    Op,
    Payload,
    Provenance,
    Relation,
    SymbolRange,
    TensorType,
    Value,
    freeze,
    parse_graph,
    payload_table,
    print_graph,
)

DTYPES = st.sampled_from(list(DType))
FLOATS = st.floats(allow_nan=False)
EXTENTS = st.one_of(st.integers(1, 9).map(Dim.of), st.sampled_from([Dim.symbol("N"), (Dim.symbol("H") + 1) // 2]))


@st.composite
def payloads(draw: st.DrawFn) -> Payload:
    """Any dtype, any bits, inline or large."""
    dtype = draw(DTYPES)
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    count = 1
    for extent in shape:
        count *= extent
    bits = st.just(b"\0") | st.just(b"\1") if dtype is DType.BOOL else st.binary(min_size=1, max_size=1)
    size = count * dtype.itemsize
    return Payload(dtype, shape, b"".join(draw(st.lists(bits, min_size=size, max_size=size))))


ATTRIBUTES: st.SearchStrategy[Attribute] = st.one_of(
    st.booleans(),
    st.integers(-(1 << 40), 1 << 40),
    FLOATS,
    st.text(max_size=8),
    DTYPES,
    payloads(),
    st.lists(st.integers(-9, 9), max_size=4).map(tuple),
    st.lists(EXTENTS, min_size=1, max_size=3).map(tuple),
)
NAMES = st.sampled_from(["alpha", "beta", "gamma"])
ORIGINS = st.builds(Provenance, *[st.text(max_size=6)] * 4)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Ops with arbitrary attributes; their meaning does not matter to the text."""
    inputs = tuple(_value(draw, f"in{at}") for at in range(draw(st.integers(1, 3))))
    known, ops = list(inputs), []
    for at in range(draw(st.integers(0, 4))):
        operands = tuple(draw(st.lists(st.sampled_from(known), max_size=3)))
        results = tuple(_value(draw, f"v{at}_{part}") for part in range(draw(st.integers(1, 2))))
        attributes = freeze(draw(st.dictionaries(NAMES, ATTRIBUTES)))
        ops.append(Op("some_op", operands, results, attributes, None, draw(ORIGINS)))
        known.extend(results)
    outputs = tuple(draw(st.lists(st.sampled_from(known), min_size=1, max_size=2)))
    guards = (Guard(Dim.symbol("H"), Dim.of(3), draw(st.sampled_from(Relation)), draw(ORIGINS)),)
    symbols = (SymbolRange("N"), SymbolRange("H", 2, 64))
    labels = tuple(f"input {at}" for at in range(len(inputs)))
    return Graph(inputs, outputs, tuple(ops), guards, symbols, labels, tuple(map(str, range(len(outputs)))))


def _value(draw: st.DrawFn, name: str) -> Value:
    return Value(name, TensorType(draw(DTYPES), tuple(draw(st.lists(EXTENTS, max_size=3)))))


@given(graphs())
def test_printing_and_parsing_are_inverse(graph: Graph) -> None:
    """The text with origins and payload table gives back a graph of the same text, values and attributes."""
    text = print_graph(graph, provenance=True)
    again = parse_graph(text, payload_table(graph))
    assert print_graph(again, provenance=True) == text
    assert again.guards == graph.guards and again.symbols == graph.symbols
    for ours, theirs in zip(graph.ops, again.ops, strict=True):
        assert ours.provenance == theirs.provenance
        assert dict(ours.attributes) == dict(theirs.attributes)


SMALL = """graph {
  symbol N in 1..
  input %0 "x" : float32[N, 3]
  %1 = constant {value = payload(float32, scalar, [0.5])} : float32[]
  %2 = broadcast_to %1 {shape = <N, 3>} : float32[N, 3]
  %3 = region %0, %2 {kind = "elementwise"} : float32[N, 3] do
    input %0 : float32[N, 3]
    input %1 : float32[N, 3]
    %2 = mul %0, %1 : float32[N, 3]
    yield %2
  end
  output %3 "y"
}
"""


def test_a_region_prints_as_its_body() -> None:
    """A region's block stands between do and end, with names of its own."""
    assert print_graph(parse_graph(SMALL)) == SMALL


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("graph {\n  input %0 : float32[2]\n}", "line 2"),
        ('graph {\n  output %9 "y"\n}', "line 2"),
        ('graph {\n  input %0 "x" : float31[2]\n}', "line 2"),
        ("graph {\n  %1 = exp %0 : float32[2]\n}", "line 2"),
        ("graph { ~ }", "line 1"),
        ("graph {", "line 1"),
        ("graph { } graph", "line 1"),
    ],
)
def test_broken_text_is_refused_with_its_line(text: str, line: str) -> None:
    """The error names the line and the page of the grammar."""
    with pytest.raises(ModelError, match=rf"{line}: .*docs/ir\.md"):
        parse_graph(text)


@given(st.integers(0, len(SMALL)), st.integers(0, 6), st.text('%{}()[]<>=:,./+-*0123456789xNm_ "\n', max_size=4))
def test_damaged_text_is_refused_or_read(at: int, length: int, put: str) -> None:
    """Whatever is cut out of a text and put into it, the parser gives a graph or a ModelError, nothing else."""
    with contextlib.suppress(ModelError):
        parse_graph(SMALL[:at] + put + SMALL[at + length :])


@pytest.mark.parametrize(
    "text",
    [
        "graph { %1 = constant {value = payload(float32, 1, hex:abc)} : float32[1] }",
        'graph { symbol N in 1..\n input %0 "x" : float32[max] }',
        f'graph {{ input %0 "x" : float32[{"9" * 5000}] }}',
        f'graph {{ input %0 "x" : float32[{"(" * 5000}N] }}',
    ],
)
def test_unreadable_values_are_refused(text: str) -> None:
    """Odd hex digits, reserved names, endless numbers and brackets end in a ModelError."""
    with pytest.raises(ModelError):
        parse_graph(text)


def test_a_missing_payload_is_refused() -> None:
    """A digest without its entry in the table is an error."""
    values: list[float] = [float(at) for at in range(40)]
    payload = Payload.of(DType.FLOAT32, (40,), values)
    op = Op("constant", (), (Value("0", TensorType.of(DType.FLOAT32, [40])),), freeze({"value": payload}))
    graph = Graph((), op.results, (op,), output_names=("y",))
    with pytest.raises(ModelError, match="payload table lacks"):
        parse_graph(print_graph(graph))
