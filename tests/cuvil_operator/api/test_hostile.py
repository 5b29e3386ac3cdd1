"""Whatever stands in a stored object, reading it ends in a value or in a SpecError, never in a traceback."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, SpecError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SPEC: dict[str, Any] = yaml.safe_load(
    """
    model:
      uri: https://a.example.com/a.onnx
      secretRef: {name: a}
      inputs: [{name: x, shape: [N, 3], bounds: {N: {min: 1, max: 2}}}]
    target: x86_64-cpu
    compile: {optLevel: 1, timeout: 30m, tolerations: [{operator: Exists}], resources: {requests: {cpu: 1}}}
    slo: {errorRate: 1%, latency: {percentile: 95, threshold: 800ms}, window: 30d}
    rollout: {steps: [{weight: 50, hold: 5m}], traffic: {gateway: {name: a}, hostnames: [a.example.com]}}
    """
)
STATUS: dict[str, Any] = yaml.safe_load(
    """
    phase: Ready
    stable: {revision: "0123456789ab", since: "2026-01-31T12:00:00Z"}
    analysis:
      {verdict: Pass, reason: A, message: b, revision: r, at: "2026-01-31T12:00:00Z", gates: [{name: a, verdict: Pass}]}
    conditions: [{type: Ready, status: "True", reason: A, message: b, lastTransitionTime: "2026-01-31T12:00:00Z"}]
    """
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the path of every value inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inner for found in places(one, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """Give a copy with another value at a path."""
    if not path:
        return by
    whole = copy.deepcopy(value)
    node = whole
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = by
    return whole


@settings(max_examples=100)
@given(st.sampled_from(places(SPEC)), JSON)
def test_any_value_anywhere_in_a_spec(path: tuple[Any, ...], by: Any) -> None:
    """A spec with anything at any place reads, or the fault names its place."""
    try:
        CuvilModelSpec.from_dict(replaced(SPEC, path, by))
    except SpecError as fault:
        assert str(fault).startswith("spec")


@settings(max_examples=100)
@given(st.sampled_from(places(STATUS)), JSON)
def test_any_value_anywhere_in_a_status(path: tuple[Any, ...], by: Any) -> None:
    """A status with anything at any place reads, or the fault names its place."""
    try:
        CuvilModelStatus.from_dict(replaced(STATUS, path, by))
    except SpecError as fault:
        assert str(fault).startswith("status")


def test_time_at_the_edge_of_the_calendar() -> None:
    """A time that no calendar of Python holds in UTC is a fault that names its place."""
    raw = replaced(STATUS, ("stable", "since"), "0001-01-01T00:00:00+14:00")
    with pytest.raises(SpecError, match=r"status\.stable\.since"):
        CuvilModelStatus.from_dict(raw)
