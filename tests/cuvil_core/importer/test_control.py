"""If, Loop and Scan of models: the numbers of ONNX Runtime, or a refusal that names the node."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import parser

from cuvil_core import reference
from cuvil_core.contract import InputSpec
from cuvil_core.errors import CuvilError, InputError, InternalError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.ir import Graph
from cuvil_core.lowering import lower
from cuvil_core.passes import run
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import interpreted

Array = np.ndarray[Any, np.dtype[Any]]


def _model(signature: str, body: str, opset: int = 17) -> bytes:
    """A model in ONNX's own text."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {signature} {{ {body} }}')
    return bytes(model.SerializeToString())


def _control(graph: Graph) -> list[str]:
    """The ops of control flow of the outer level."""
    return [op.name for op in graph.ops if op.blocks]


def _agree(model: bytes, graph: Graph, feed: Mapping[str, Array]) -> None:
    """Reference, passes and program give ONNX Runtime's outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model, options)
    outputs = [one.name for one in session.get_outputs()]
    want = dict(zip(outputs, session.run(outputs, dict(feed)), strict=True))
    given = {name: array for name, array in feed.items() if name in graph.input_names}
    optimized = run(graph, 2)[0]
    for found in (reference.run(graph, given), reference.run(optimized, given), interpreted(optimized, given)):
        for name in outputs:
            assert (found[name].shape, found[name].dtype) == (want[name].shape, want[name].dtype), name
            np.testing.assert_allclose(found[name], want[name], 1e-5, 1e-6, err_msg=name)


X = np.arange(12, dtype=np.float32).reshape(4, 3) / 8 - 0.5

SIDES = """
  y = If (flag) <
    then_branch = t () => (float[N, 3] a) { w = Constant <value = float[3] {1.0, 2.0, 3.0}> () a = Add(x, w) },
    else_branch = e () => (float[N, 3] b) { b = Neg(z) }
  >
"""


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_by_data(flag: bool) -> None:
    """Both sides see values of the outside."""
    model = _model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}")
    graph = load(model)
    assert _control(graph) == ["if"]
    _agree(model, graph, {"x": X, "flag": np.array(flag)})


def test_names_of_a_side_hide_those_of_the_outside() -> None:
    """A side may define, and read afterwards, what is defined around it."""
    sides = SIDES.replace("b = Neg(z)", "x = Neg(z) b = Add(x, x)")
    graph = load(_model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {sides}"))
    for flag, want in ((True, X + np.array([1, 2, 3], np.float32)), (False, -2 * np.exp(X))):
        found = reference.run(graph, {"x": X, "flag": np.array(flag)})
        np.testing.assert_allclose(found["y"], want, 1e-6)


def test_a_known_condition_takes_its_side() -> None:
    """The other side vanishes, and may hold what nobody compiles."""
    body = """
      s = Shape(x) rank = Size(s) two = Constant <value = int64 {2}> () same = Equal(rank, two)
      y = If (same) <
        then_branch = t () => (float[N, 3] a) { a = Exp(x) },
        else_branch = e () => (float[N, 3] b) { b = NoSuchOp(x) }
      >
    """
    graph = load(_model("(float[N, 3] x) => (float[N, 3] y)", body))
    assert _control(graph) == []
    np.testing.assert_array_equal(reference.run(graph, {"x": X})["y"], np.exp(X))


def test_branches_of_two_shapes_are_refused() -> None:
    """The shape of a result cannot depend on the input's data."""
    body = """
      y = If (flag) <
        then_branch = t () => (float[M, 3] a) { a = Concat <axis = 0> (x, x) },
        else_branch = e () => (float[M, 3] b) { b = Identity(x) }
      >
    """
    with pytest.raises(UnsupportedOpError, match=r"If, opset 17.*has the shapes \[2\*N, 3\] and \[N, 3\]"):
        load(_model("(float[N, 3] x, bool flag) => (float[M, 3] y)", body))


def test_a_float_is_no_condition() -> None:
    """ONNX allows bool alone."""
    with pytest.raises(ModelError, match="float32, which ONNX does not allow"):
        load(_model("(float[N, 3] x, float flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}"))


LOOP = """
  y, rows = Loop ({turns}, {flag}, x) <
    body = b (int64 i, bool go_on, float[N, 3] state) => (bool next, float[N, 3] added, float[N, 3] row)
      <float step = {{0.5}}> {{
        number = Cast <to = 1> (i)
        scaled = Mul(number, step)
        moved = Add(state, scaled)
        added = Add(moved, outside)
        row = Neg(state)
        {condition}
      }}
  >
"""


@pytest.mark.parametrize("turns", ["three", "many"])
def test_a_loop_of_known_turns(turns: str) -> None:
    """A constant, or an extent, says how many turns there are and how many rows; a constant of the body is its own."""
    body = LOOP.format(turns=turns, flag="", condition="next = Identity(go_on)")
    head = """
      three = Constant <value = int64 {3}> () s = Shape(x)
      zero = Constant <value = int64 {0}> () many = Gather(s, zero) outside = Tanh(x)
    """
    model = _model("(float[N, 3] x) => (float[N, 3] y, float[R, N, 3] rows)", head + body)
    graph = load(model)
    assert _control(graph) == ["loop"]
    _agree(model, graph, {"x": X})


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_whose_turns_the_data_says(turns: int) -> None:
    """The number of turns is an input."""
    body = LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)").replace("y, rows", "y")
    body = body.replace(", float[N, 3] row)", ")")
    model = _model("(float[N, 3] x, int64 turns) => (float[N, 3] y)", "outside = Tanh(x)" + body)
    _agree(model, load(model), {"x": X, "turns": np.array(turns, np.int64)})


@pytest.mark.parametrize("flag", [True, False])
def test_a_loop_that_its_data_ends(flag: bool) -> None:
    """With no number of turns the condition alone ends it; false at the start, there is no turn."""
    condition = """
      total = ReduceSum <keepdims = 0> (added) bound = Constant <value = float {40.0}> () next = Less(total, bound)
    """
    body = LOOP.format(turns="", flag="flag", condition=condition).replace("y, rows", "y")
    body = body.replace(", float[N, 3] row)", ")")
    model = _model("(float[N, 3] x, bool flag) => (float[N, 3] y)", "outside = Exp(x)" + body)
    _agree(model, load(model), {"x": X, "flag": np.array(flag)})


def test_rows_whose_number_the_data_says() -> None:
    """The number of turns becomes an extent of the call; below 1 there is no row, while rows keep their extents."""
    body = LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)")
    model = _model("(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body)
    graph = load(model)
    for turns in (1, 3):
        _agree(model, graph, {"x": X, "turns": np.array(turns, np.int64)})
    for turns in (0, -1):
        for call in (reference.run, interpreted):
            found = call(run(graph, 2)[0], {"x": X, "turns": np.array(turns, np.int64)})
            assert found["rows"].shape == (0, 4, 3)
            np.testing.assert_array_equal(found["y"], X)


@pytest.mark.parametrize(("turns", "bound"), [(8, 20.0), (2, 1e9), (8, -1e9)])
def test_rows_of_a_loop_that_its_data_ends(turns: int, bound: float) -> None:
    """There is room for the most turns, and as many rows as there were turns."""
    condition = f"""
      total = ReduceSum <keepdims = 0> (added) bound = Constant <value = float {{{bound}}}> () next = Less(total, bound)
    """
    body = LOOP.format(turns="turns", flag="", condition=condition)
    model = _model("(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body)
    _agree(model, load(model), {"x": X, "turns": np.array(turns, np.int64)})


WINDOWS = """
  count = Constant <value = int64 {3}> () zero = Constant <value = int64 {0}> ()
  y, rows = Loop (turns, , count) <
    body = b (int64 i, bool go_on, int64 state) => (bool next, int64 after, float[W, 3] row) {
      next = Identity(go_on) after = Add(state, zero) axes = Constant <value = int64[1] {0}> ()
      first = Unsqueeze(i, axes) width = Constant <value = int64 {2}> () end = Add(i, width)
      last = Unsqueeze(end, axes) row = Slice(x, first, last)
    }
  >
"""


def test_windows_that_move_with_the_turn() -> None:
    """A slice from i to i + 2 has two rows wherever it lies; one that does not fit ends the call."""
    model = _model("(float[N, 3] x, int64 turns) => (int64 y, float[R, W, 3] rows)", WINDOWS)
    graph = load(model)
    _agree(model, graph, {"x": X, "turns": np.array(3)})
    for call in (reference.run, interpreted):
        with pytest.raises(InputError, match="that a slice of 2 elements lies within its axis"):
            call(run(graph, 2)[0], {"x": X, "turns": np.array(4)})


def test_rows_without_a_limit_are_refused() -> None:
    """A loop that only its condition ends has no room for rows."""
    body = LOOP.format(turns="", flag="flag", condition="next = Identity(go_on)")
    with pytest.raises(UnsupportedOpError, match=r"Loop, opset 17\) uses rows without a limit of turns"):
        load(_model("(float[N, 3] x, bool flag) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body))


def test_a_side_that_cannot_run_ends_the_call() -> None:
    """A branch that does not fit the shapes is left out, and a call that would take it is refused in a sentence."""
    body = """
      y = If (flag) <
        then_branch = t () => (float[N, 3] a) { w = Constant <value = float[4] {1.0, 2.0, 3.0, 4.0}> () a = Add(x, w) },
        else_branch = e () => (float[N, 3] b) { b = Neg(x) }
      >
    """
    graph = run(load(_model("(float[N, 3] x, bool flag) => (float[N, 3] y)", body)), 2)[0]
    for call in (reference.run, interpreted):
        np.testing.assert_array_equal(call(graph, {"x": X, "flag": np.array(False)})["y"], -X)
        with pytest.raises(InputError, match="that the condition is False, as the other branch cannot run"):
            call(graph, {"x": X, "flag": np.array(True)})


def test_a_value_that_grows_is_unrolled() -> None:
    """Known turns are written one after another where a shape changes from turn to turn."""
    body = """
      turns = Constant <value = int64 {3}> ()
      y = Loop (turns, , x) <
        body = b (int64 i, bool go_on, float[M, 3] state) => (bool next, float[K, 3] more) {
          next = Identity(go_on) more = Concat <axis = 0> (state, x)
        }
      >
    """
    model = _model("(float[N, 3] x) => (float[M, 3] y)", body)
    graph = load(model)
    assert _control(graph) == []
    _agree(model, graph, {"x": X})
    with pytest.raises(UnsupportedOpError, match="loop-carried value 0 has the shapes"):
        load(_model("(float[N, 3] x) => (float[M, 3] y)", body.replace("{3}", "{1000000}")))


def test_a_loop_inside_of_a_loop() -> None:
    """The inner one sees the state and the number of the outer one's turn, and gives it a carried value."""
    body = """
      three = Constant <value = int64 {3}> () two = Constant <value = int64 {2}> ()
      y = Loop (three, , x) <
        body = b (int64 i, bool go_on, float[N, 3] state) => (bool next, float[N, 3] sum) {
          next = Identity(go_on) number = Cast <to = 1> (i)
          sum = Loop (two, , state) <
            body = c (int64 j, bool go_on2, float[N, 3] inner) => (bool next2, float[N, 3] more) {
              next2 = Identity(go_on2) a = Mul(inner, number) more = Add(a, x)
            }
          >
        }
      >
    """
    model = _model("(float[N, 3] x) => (float[N, 3] y)", body)
    graph = load(model)
    assert [op.name for op in graph.ops[-1].blocks[0].ops if op.blocks] == ["loop"]
    _agree(model, graph, {"x": X})


@pytest.mark.parametrize("attributes", [
    "",
    ", scan_input_directions = [1, 0], scan_output_directions = [1]",
    ", scan_input_axes = [-1, 1], scan_output_axes = [-1]",
])  # fmt: skip
def test_scan(attributes: str) -> None:
    """Any axis, forward and backward."""
    given = "float[T, B] a, float[T, B] b" if "axes" not in attributes else "float[B, T] a, float[B, T] b"
    body = f"""
      y, rows = Scan (start, a, b) <num_scan_inputs = 2{attributes},
        body = s (float[B] state, float[B] one, float[B] other) => (float[B] sum, float[B] row) {{
          product = Mul(one, other) sum = Add(state, product) row = Sub(sum, one)
        }}
      >
    """
    model = _model(f"(float[B] start, {given}) => (float[B] y, float[U, V] rows)", body)
    graph = load(model)
    assert _control(graph) == ["loop"]
    shape = (5, 3) if "axes" not in attributes else (3, 5)
    values = np.arange(15, dtype=np.float32).reshape(shape) / 8
    _agree(model, graph, {"start": np.ones(3, np.float32), "a": values, "b": 1 - values})


def test_scan_with_a_batch() -> None:
    """Opset 8 scans each example of a batch by itself."""
    body = """
      y, rows = Scan (, start, a) <num_scan_inputs = 1, directions = [1],
        body = s (float[2] state, float[2] one) => (float[2] sum, float[2] row) {
          sum = Add(state, one) row = Mul(sum, sum)
        }
      >
    """
    model = _model("(float[B, 2] start, float[B, T, 2] a) => (float[B, 2] y, float[B, T, 2] rows)", body, opset=8)
    a = np.arange(24, dtype=np.float32).reshape(3, 4, 2) / 8
    _agree(model, load(model), {"start": np.ones((3, 2), np.float32), "a": a})


def test_unrolling_is_bounded() -> None:
    """Loops of changing shapes within each other, a hostile model of few bytes, end in a sentence and soon."""
    body = "n = Identity(c) o = Concat <axis = 0> (s, x)"
    for depth in range(6):
        signature = f"(int64 i{depth}, bool c{depth}, float[M] s{depth}) => (bool n{depth}, float[K] o{depth})"
        body = body.replace("(c)", f"(c{depth})").replace("(s,", f"(s{depth},").replace(", s)", f", s{depth})")
        body = body.replace("n =", f"n{depth} =", 1).replace("o =", f"o{depth} =", 1)
        body = f"n = Identity(c) o = Loop (turns, , s) <body = b {signature} {{ {body} }}>"
    last = body.removeprefix("n = Identity(c) o").replace("(turns, , s)", "(turns, , x)", 1)
    head = "turns = Constant <value = int64 {200}> ()"
    with pytest.raises(SizeError, match="unrolls to more than 4096 nodes"):
        load(_model("(float[N] x) => (float[M] y)", f"{head} y{last}"))


@pytest.mark.parametrize("flag", [True, False])
def test_narrow_types_go_through_blocks(flag: bool) -> None:
    """What a branch, a loop and a scan hand on keeps its element type, and is widened as such afterwards."""
    body = """
      q = Cast <to = 17> (x) minus = Neg(x) other = Cast <to = 17> (minus)
      picked = If (flag) <
        then_branch = t () => (float8e4m3fn[N, 3] a) { a = Identity(q) },
        else_branch = e () => (float8e4m3fn[N, 3] b) { b = Identity(other) }
      >
      two = Constant <value = int64 {2}> ()
      last, rows = Loop (two, , picked) <
        body = l (int64 i, bool c, float8e4m3fn[N, 3] s) => (bool d, float8e4m3fn[N, 3] n, float8e4m3fn[N, 3] row) {
          d = Identity(c) n = Identity(q) row = Identity(s)
        }
      >
      turned = Scan (rows) <num_scan_inputs = 1, scan_output_directions = [1],
        body = s (float8e4m3fn[N, 3] one) => (float8e4m3fn[N, 3] same) { same = Identity(one) }
      >
      y = Cast <to = 1> (turned) z = Cast <to = 1> (last)
    """
    model = _model("(float[N, 3] x, bool flag) => (float[R, N, 3] y, float[N, 3] z)", body, opset=21)
    x = X * np.float32(7.3)
    narrow = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    graph = load(model)
    for call in (reference.run, interpreted):
        found = call(run(graph, 2)[0], {"x": x, "flag": np.array(flag)})
        np.testing.assert_array_equal(found["y"], np.stack([narrow, narrow if flag else -narrow]))
        np.testing.assert_array_equal(found["z"], narrow)


def test_bodies_of_wrong_signatures_are_broken_models() -> None:
    """A body with fewer inputs or outputs than its node has values is named."""
    few = "y = Loop (, , x) <body = b (int64 i, bool c) => (bool d) { d = Identity(c) }>"
    with pytest.raises(ModelError, match=r"its subgraph body has the inputs \['i', 'c'\], not 3"):
        load(_model("(float[N] x) => (float[N] y)", few))
    short = "y = Loop (, , x) <body = b (int64 i, bool c, float[N] v) => (bool d) { d = Identity(c) }>"
    with pytest.raises(ModelError, match="fewer values than the loop carries"):
        load(_model("(float[N] x) => (float[N] y)", short))


def test_a_guard_of_a_body_is_a_guard_of_the_call() -> None:
    """Extents that must be equal inside of a block are compared when a call enters."""
    body = """
      y = Loop (turns, , x) <
        body = b (int64 i, bool c, float[N] v) => (bool d, float[N] w) { d = Identity(c) w = Add(v, z) }
      >
    """
    graph = load(_model("(float[N] x, float[M] z, int64 turns) => (float[N] y)", body), (InputSpec("x", ("N",)),))
    assert [str(guard) for guard in graph.guards] in (["N == M"], ["M == N"])


DAMAGED = {
    "branch": _model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}"),
    "loop": _model(
        "(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)",
        "outside = Exp(x)" + LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)"),
    ),
    "scan": _model(
        "(float[2] start, float[T, 2] a) => (float[2] y, float[T, 2] rows)",
        """
        y, rows = Scan (start, a) <num_scan_inputs = 1, scan_input_directions = [1],
          body = s (float[2] s, float[2] one) => (float[2] sum, float[2] row) { sum = Add(s, one) row = Exp(sum) }
        >
        """,
    ),
    "layer": _model(
        "(float[T, N, 2] x, int32[N] lengths) => (float[T, 1, N, 2] y, float[1, N, 2] h, float[1, N, 2] c)",
        """
        w = Constant <value = float[1, 8, 2] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5}> ()
        y, h, c = LSTM <hidden_size = 2, activations = ["Sigmoid", "Tanh", "Affine"], activation_alpha = [0.5]>
          (x, w, w, , lengths)
        """,
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_control_flow_is_refused_or_compiled(name: str) -> None:
    """A flipped bit anywhere ends in a sentence, or in a graph that lowers; never in a fault of the compiler."""
    data, random = DAMAGED[name], np.random.default_rng(5)
    load(data)
    ends = set()
    for _ in range(250):
        at, bit = int(random.integers(len(data))), int(random.integers(8))
        try:
            graph = load(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
            optimized, _ = run(graph, 2)
            lower(optimized, choose(optimized, Machine.of(Isa.AVX2)))
            ends.add("compiled")
        except CuvilError as error:
            assert not isinstance(error, InternalError), f"bit {bit} of byte {at}: {error}"
            assert len(str(error).splitlines()) == 1
            ends.add(type(error).__name__)
    assert {"compiled", "ModelError"} <= ends
