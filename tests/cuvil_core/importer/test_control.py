"""If, Loop and Scan of models: the numbers of ONNX Runtime, or a refusal that names the node."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from control_models import LOOP, SIDES, X, agree, control, model
from cuvil_core import reference
from cuvil_core.contract import InputSpec
from cuvil_core.errors import InputError, ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx import load
from cuvil_core.passes import run
from graph_checks import interpreted

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_by_data(flag: bool) -> None:
    """Both sides see values of the outside."""
    made = model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}")
    graph = load(made)
    assert control(graph) == ["if"]
    agree(made, graph, {"x": X, "flag": np.array(flag)})


def test_names_of_a_side_hide_those_of_the_outside() -> None:
    """A side may define, and read afterwards, what is defined around it."""
    sides = SIDES.replace("b = Neg(z)", "x = Neg(z) b = Add(x, x)")
    graph = load(model("(float[N, 3] x, bool flag) => (float[N, 3] y)", f"z = Exp(x) {sides}"))
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
    graph = load(model("(float[N, 3] x) => (float[N, 3] y)", body))
    assert control(graph) == []
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
        load(model("(float[N, 3] x, bool flag) => (float[M, 3] y)", body))


def test_a_float_is_no_condition() -> None:
    """ONNX allows bool alone."""
    with pytest.raises(ModelError, match="float32, which ONNX does not allow"):
        load(model("(float[N, 3] x, float flag) => (float[N, 3] y)", f"z = Exp(x) {SIDES}"))


@pytest.mark.parametrize("turns", ["three", "many"])
def test_a_loop_of_known_turns(turns: str) -> None:
    """A constant, or an extent, says how many turns there are and how many rows; a constant of the body is its own."""
    body = LOOP.format(turns=turns, flag="", condition="next = Identity(go_on)")
    head = """
      three = Constant <value = int64 {3}> () s = Shape(x)
      zero = Constant <value = int64 {0}> () many = Gather(s, zero) outside = Tanh(x)
    """
    made = model("(float[N, 3] x) => (float[N, 3] y, float[R, N, 3] rows)", head + body)
    graph = load(made)
    assert control(graph) == ["loop"]
    agree(made, graph, {"x": X})


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_whose_turns_the_data_says(turns: int) -> None:
    """The number of turns is an input."""
    body = LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)").replace("y, rows", "y")
    body = body.replace(", float[N, 3] row)", ")")
    made = model("(float[N, 3] x, int64 turns) => (float[N, 3] y)", "outside = Tanh(x)" + body)
    agree(made, load(made), {"x": X, "turns": np.array(turns, np.int64)})


@pytest.mark.parametrize("flag", [True, False])
def test_a_loop_that_its_data_ends(flag: bool) -> None:
    """With no number of turns the condition alone ends it; false at the start, there is no turn."""
    condition = """
      total = ReduceSum <keepdims = 0> (added) bound = Constant <value = float {40.0}> () next = Less(total, bound)
    """
    body = LOOP.format(turns="", flag="flag", condition=condition).replace("y, rows", "y")
    body = body.replace(", float[N, 3] row)", ")")
    made = model("(float[N, 3] x, bool flag) => (float[N, 3] y)", "outside = Exp(x)" + body)
    agree(made, load(made), {"x": X, "flag": np.array(flag)})


def test_rows_whose_number_the_data_says() -> None:
    """The number of turns becomes an extent of the call; below 1 there is no row, while rows keep their extents."""
    body = LOOP.format(turns="turns", flag="", condition="next = Identity(go_on)")
    made = model("(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body)
    graph = load(made)
    for turns in (1, 3):
        agree(made, graph, {"x": X, "turns": np.array(turns, np.int64)})
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
    made = model("(float[N, 3] x, int64 turns) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body)
    agree(made, load(made), {"x": X, "turns": np.array(turns, np.int64)})


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
    made = model("(float[N, 3] x, int64 turns) => (int64 y, float[R, W, 3] rows)", WINDOWS)
    graph = load(made)
    agree(made, graph, {"x": X, "turns": np.array(3)})
    for call in (reference.run, interpreted):
        with pytest.raises(InputError, match="that a slice of 2 elements lies within its axis"):
            call(run(graph, 2)[0], {"x": X, "turns": np.array(4)})


def test_rows_without_a_limit_are_refused() -> None:
    """A loop that only its condition ends has no room for rows."""
    body = LOOP.format(turns="", flag="flag", condition="next = Identity(go_on)")
    with pytest.raises(UnsupportedOpError, match=r"Loop, opset 17\) uses rows without a limit of turns"):
        load(model("(float[N, 3] x, bool flag) => (float[N, 3] y, float[R, N, 3] rows)", "outside = Exp(x)" + body))


def test_a_side_that_cannot_run_ends_the_call() -> None:
    """A branch that does not fit the shapes is left out, and a call that would take it is refused in a sentence."""
    body = """
      y = If (flag) <
        then_branch = t () => (float[N, 3] a) { w = Constant <value = float[4] {1.0, 2.0, 3.0, 4.0}> () a = Add(x, w) },
        else_branch = e () => (float[N, 3] b) { b = Neg(x) }
      >
    """
    graph = run(load(model("(float[N, 3] x, bool flag) => (float[N, 3] y)", body)), 2)[0]
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
    made = model("(float[N, 3] x) => (float[M, 3] y)", body)
    graph = load(made)
    assert control(graph) == []
    agree(made, graph, {"x": X})
    with pytest.raises(UnsupportedOpError, match="loop-carried value 0 has the shapes"):
        load(model("(float[N, 3] x) => (float[M, 3] y)", body.replace("{3}", "{1000000}")))


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
    made = model("(float[N, 3] x) => (float[N, 3] y)", body)
    graph = load(made)
    assert [op.name for op in graph.ops[-1].blocks[0].ops if op.blocks] == ["loop"]
    agree(made, graph, {"x": X})


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
        load(model("(float[N] x) => (float[M] y)", f"{head} y{last}"))


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
    made = model("(float[N, 3] x, bool flag) => (float[R, N, 3] y, float[N, 3] z)", body, opset=21)
    x = X * np.float32(7.3)
    narrow = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    graph = load(made)
    for call in (reference.run, interpreted):
        found = call(run(graph, 2)[0], {"x": x, "flag": np.array(flag)})
        np.testing.assert_array_equal(found["y"], np.stack([narrow, narrow if flag else -narrow]))
        np.testing.assert_array_equal(found["z"], narrow)


def test_bodies_of_wrong_signatures_are_broken_models() -> None:
    """A body with fewer inputs or outputs than its node has values is named."""
    few = "y = Loop (, , x) <body = b (int64 i, bool c) => (bool d) { d = Identity(c) }>"
    with pytest.raises(ModelError, match=r"its subgraph body has the inputs \['i', 'c'\], not 3"):
        load(model("(float[N] x) => (float[N] y)", few))
    short = "y = Loop (, , x) <body = b (int64 i, bool c, float[N] v) => (bool d) { d = Identity(c) }>"
    with pytest.raises(ModelError, match="fewer values than the loop carries"):
        load(model("(float[N] x) => (float[N] y)", short))


def test_a_guard_of_a_body_is_a_guard_of_the_call() -> None:
    """Extents that must be equal inside of a block are compared when a call enters."""
    body = """
      y = Loop (turns, , x) <
        body = b (int64 i, bool c, float[N] v) => (bool d, float[N] w) { d = Identity(c) w = Add(v, z) }
      >
    """
    graph = load(model("(float[N] x, float[M] z, int64 turns) => (float[N] y)", body), (InputSpec("x", ("N",)),))
    assert [str(guard) for guard in graph.guards] in (["N == M"], ["M == N"])
