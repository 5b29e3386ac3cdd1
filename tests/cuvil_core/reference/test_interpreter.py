"""Runs of whole graphs: inputs are checked, symbols bound, guards enforced."""

from typing import Any

import numpy as np
import pytest

from cuvil_core import reference
from cuvil_core.errors import InputError
from cuvil_core.ir import parse_graph

GRAPH = parse_graph("""graph {
  symbol N in 1..4
  symbol H in 2..
  input %0 "x" : float32[N, H]
  input %1 "y" : float32[N, 2]
  %2 = region %0 {kind = "elementwise"} : float32[N, H] do
    input %0 : float32[N, H]
    %1 = neg %0 : float32[N, H]
    %2 = abs %1 : float32[N, H]
    yield %2
  end
  %3 = reduce %2 {axes = [1], kind = "sum"} : float32[N]
  guard 2*(H//2) == H @("m.onnx", "up", "Resize", "")
  output %3 "sum"
  output %1 "same"
}
""")
X, Y = np.array([[1, -2, 3, -4]], np.float32), np.zeros((1, 2), np.float32)


def test_regions_run_like_their_bodies() -> None:
    """Outputs come under the model's names; an input may be an output."""
    got = reference.run(GRAPH, {"x": X, "y": Y})
    assert got["sum"].tolist() == [10.0] and got["same"] is not Y
    assert got["same"].tolist() == Y.tolist()


WRONG: dict[str, dict[str, np.ndarray[Any, Any]]] = {
    "'y' is missing": {"x": X},
    "no input 'z'": {"x": X, "y": Y, "z": Y},
    "dtype float64; pass float32": {"x": X.astype(np.float64), "y": Y},
    "pass rank 2": {"x": X[0], "y": Y},
    "with N = 1": {"x": X, "y": np.zeros((2, 2), np.float32)},
    r"pass \[N, 2\]": {"x": X, "y": np.zeros((1, 3), np.float32)},
    r"N is 5, outside of 1\.\.4": {"x": np.zeros((5, 4), np.float32), "y": np.zeros((5, 2), np.float32)},
    r"Resize 'up' needs .* fails for H = 3": {"x": X[:, :3], "y": Y},
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_inputs_are_refused(fault: str) -> None:
    """Each fault ends in a sentence that says what to pass."""
    with pytest.raises(InputError, match=fault):
        reference.run(GRAPH, WRONG[fault])
