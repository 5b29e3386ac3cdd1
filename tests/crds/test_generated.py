"""What is made from the CRD is current, and the example is a model that the operator reads."""

from pathlib import Path

import yaml

from crds import generate
from cuvil_operator.api import CuvilModelSpec

ROOT = Path(__file__).parents[2]


def test_generated_files_are_current() -> None:
    """The chart's copy of the CRD and its reference page say what the CRD says; `make generate` writes them."""
    stale = [str(path.relative_to(ROOT)) for path, text in generate.outputs().items() if path.read_text() != text]
    assert not stale


def test_reference_names_every_field() -> None:
    """The page that people read has a line for each field of spec and status."""
    page = (ROOT / "docs/reference/cuvilmodel.md").read_text()
    for field in (
        "spec.rollout.analysis.falseRollback",
        "spec.model.inputs[].bounds.*.min",
        "status.rollback.gate.bound",
    ):
        assert f"`{field}`" in page


def test_example_reads() -> None:
    """The example in the documents is a whole and valid spec; nothing in it is lost on the way."""
    example = yaml.safe_load((ROOT / "examples/cuvilmodel.yaml").read_text())
    spec = CuvilModelSpec.from_dict(example["spec"])
    assert [step.weight for step in spec.rollout.steps] == [5, 25, 50]
