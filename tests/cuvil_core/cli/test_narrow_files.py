"""Arrays of types that NumPy lacks, to files and back."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cuvil_core.cli.examples import read_inputs
from cuvil_core.cli.running import summary
from cuvil_core.contract import TensorSpec
from cuvil_core.runtime.elements import nameless


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4"])
def test_saved_arrays_get_their_type_back(name: str, tmp_path: Path) -> None:
    """NumPy saves them as bytes without a name; the model's signature has it."""
    array = np.array([1, -2, 0]).astype(getattr(ml_dtypes, name))
    np.savez(tmp_path / "x.npz", allow_pickle=False, x=nameless(array))
    back = read_inputs(tmp_path / "x.npz", [TensorSpec("x", name, (3,))])["x"]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back.astype(np.float32), array.astype(np.float32))


def test_what_is_no_number_is_counted() -> None:
    """A NaN of bfloat16 is no least or greatest number."""
    found = summary(np.array([1, np.nan, 3], np.float32).astype(ml_dtypes.bfloat16))
    assert (found["dtype"], found["min"], found["max"], found["nonfinite"]) == ("bfloat16", 1.0, 3.0, 1)
