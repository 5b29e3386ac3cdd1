"""The recognizer's versions that the stories deploy: each a real ONNX file made from PP-OCRv4 rec."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

OVERFLOW_AT = 0.5
"""Mean input above which the overflowing version leaves the range of fp32; white paper lies at about 0.9, the seeded
normal inputs of the validation near 0."""


def write_version(kind: str, source: Path, folder: Path) -> Path:
    """Write a version of KINDS, made from the file `source`, into `folder`; equal calls give equal bytes."""
    out = folder / f"rec-{kind}.onnx"
    if not out.exists():
        out.write_bytes(KINDS[kind](source))
    return out


def _as_is(source: Path) -> bytes:
    return source.read_bytes()


def _retrained(source: Path) -> bytes:
    """Move every large weight by a seeded 1e-4 of its spread: other bytes, other numbers, same words."""
    model = onnx.load(str(source))
    rng = np.random.default_rng(7)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                held = numpy_helper.to_array(attribute.t)
                if held.dtype == np.float32 and held.size >= 1024:
                    moved = held + 1e-4 * held.std() * rng.standard_normal(held.shape)
                    attribute.t.CopyFrom(numpy_helper.from_array(moved.astype(np.float32), attribute.t.name))
    return bytes(model.SerializeToString(deterministic=True))


def _overflowing(source: Path) -> bytes:
    """Scale the input by 1 + relu(mean - OVERFLOW_AT)·1e38·1e38: harmless on noise, infinite on white paper."""
    model = onnx.load(str(source))
    graph = model.graph
    name = graph.input[0].name
    for node in graph.node:
        node.input[:] = ["cuvil_scaled" if one == name else one for one in node.input]
    constants = {"at": OVERFLOW_AT, "large": 1e38, "one": 1.0}
    made = [
        helper.make_node("Constant", [], [f"cuvil_{key}"], value=numpy_helper.from_array(np.array(number, np.float32)))
        for key, number in constants.items()
    ]
    made += [
        helper.make_node("ReduceMean", [name], ["cuvil_mean"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Sub", ["cuvil_mean", "cuvil_at"], ["cuvil_over"]),
        helper.make_node("Relu", ["cuvil_over"], ["cuvil_excess"]),
        helper.make_node("Mul", ["cuvil_excess", "cuvil_large"], ["cuvil_wide"]),
        helper.make_node("Mul", ["cuvil_wide", "cuvil_large"], ["cuvil_wider"]),
        helper.make_node("Add", ["cuvil_wider", "cuvil_one"], ["cuvil_factor"]),
        helper.make_node("Mul", [name, "cuvil_factor"], ["cuvil_scaled"]),
    ]
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return bytes(model.SerializeToString(deterministic=True))


def _unsupported(source: Path) -> bytes:
    """Pass the output through an op of a domain that nobody registered."""
    model = onnx.load(str(source))
    graph = model.graph
    last = graph.output[0].name
    for node in graph.node:
        node.output[:] = ["cuvil_inner" if one == last else one for one in node.output]
    graph.node.append(helper.make_node("Sharpen", ["cuvil_inner"], [last], name="sharpen", domain="example.custom"))
    model.opset_import.append(helper.make_opsetid("example.custom", 1))
    return bytes(model.SerializeToString(deterministic=True))


def _truncated(source: Path) -> bytes:
    whole = source.read_bytes()
    return whole[: len(whole) // 3]


KINDS: dict[str, Callable[[Path], bytes]] = {
    "base": _as_is,
    "retrained": _retrained,
    "overflowing": _overflowing,
    "unsupported": _unsupported,
    "truncated": _truncated,
}
