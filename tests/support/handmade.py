"""A small program written by hand against the C interface, as a real artifact: what runtime rooms are tested with.

It computes, for x float32(N, 3) and weights w[3]: y = x · w by column, total = y summed by row. It has a guard (N ≤
100), uses its arena, and makes a pool that does all parts of a launch on the caller's thread, for other artifacts of
the process.
"""

import functools
import json
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from cuvil_core.artifact import pack
from cuvil_core.contract import CompileRequest, Manifest, TensorSpec, signature_text

SOURCE = r"""
#include "cuvil.h"
#include <stdlib.h>
#include <string.h>
int32_t cuvil_abi_version(void) { return ABI; }
static const struct cuvil_expectation expectation = {12, SIGNATURE};
const struct cuvil_expectation *cuvil_expects(void) { return &expectation; }
int32_t cuvil_prepare(const int64_t *symbols, int64_t *arena_bytes, int64_t *dims) {
  int64_t n = symbols[0];
  if (n > 100) return 1;
  *arena_bytes = n * 12;
  dims[0] = n; dims[1] = 3; dims[2] = n;
  return 0;
}
int32_t cuvil_run(const int64_t *symbols, const void *const *inputs, void *const *outputs, const void *weights,
                  void *arena, cuvil_pool *pool, const struct cuvil_host *host) {
  const float *x = inputs[0], *w = weights;
  float *y = outputs[0], *total = outputs[1], *copy = arena;
  if (x[0] == -12345.0f) return 7;
  memcpy(copy, x, symbols[0] * 12);
  for (int64_t row = 0; row < symbols[0]; ++row) {
    float sum = 0;
    for (int column = 0; column < 3; ++column) sum += y[row * 3 + column] = copy[row * 3 + column] * w[column];
    total[row] = sum;
  }
  return 0;
}
static void launch(cuvil_pool *pool, cuvil_task *task, void *context, int32_t tasks) {
  for (int32_t part = 0; part < tasks; ++part) task(context, part, tasks);
}
static void nothing(cuvil_pool *pool) {}
cuvil_pool *cuvil_pool_create(int32_t threads) {
  cuvil_pool *pool = calloc(1, sizeof *pool);
  if (pool) *pool = (cuvil_pool){launch, threads, nothing, nothing};
  return pool;
}
void cuvil_pool_destroy(cuvil_pool *pool) { free(pool); }
"""

HEADERS = Path(__file__).parents[2] / "cuvil_core" / "support"
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)


def signature(made: Manifest) -> str:
    """What the program's code relies on, where `made` describes it."""
    symbols = made.facts["symbols"]
    bounds = {name: tuple(made.facts.get("bounds", {}).get(name, (1, None))) for name in symbols}
    return signature_text(bounds, made.inputs, made.outputs)


def library(abi: int = 3, source: str = SOURCE, made: Manifest | None = None) -> bytes:
    """The program as a shared object, compiled for the manifest `made`, by default its own."""
    return _build(abi, source, signature(made or manifest()))


@functools.cache
def _build(abi: int, source: str, expected: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        code, out = Path(folder) / "p.c", Path(folder) / "p.so"
        code.write_text(source)
        flags = [f"-I{HEADERS}", "-shared", "-fPIC", "-O2", "-g0", "-fno-sanitize=all", f"-DABI={abi}"]
        flags.append(f"-DSIGNATURE={json.dumps(expected)}")
        subprocess.run([sys.executable, "-m", "ziglang", "cc", *flags, str(code), "-o", str(out)], check=True)
        return out.read_bytes()


def manifest(**facts: Any) -> Manifest:
    """The program's manifest."""
    return Manifest(
        name="handmade",
        model_sha256=sha256(model()).hexdigest(),
        request=CompileRequest(target="x86_64-cpu"),
        inputs=(TensorSpec("x", "float32", ("N", 3)),),
        outputs=(TensorSpec("y", "float32", ("N", 3)), TensorSpec("total", "float32", ("N",))),
        segments=(),
        compiler="0",
        metadata={"character": "abc"},
        facts={"symbols": ["N"], "guards": ["N <= 100"], **facts},
    )


def artifact(weights: bytes = WEIGHTS.tobytes(), **facts: Any) -> bytes:
    """The program as an artifact that any x86-64 CPU of this decade runs."""
    made = manifest(**facts)
    return pack(made, {"x86_64-avx2": library(made=made)}, weights)


def expected(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What the program must give."""
    y = x * WEIGHTS
    return y, y.sum(axis=1)


@functools.cache
def model() -> bytes:
    """The same function as an ONNX model."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3]),
        helper.make_tensor_value_info("total", TensorProto.FLOAT, ["N"]),
    ]
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"]),
        helper.make_node("ReduceSum", ["y", "axes"], ["total"], keepdims=0),
    ]
    constants = [
        numpy_helper.from_array(WEIGHTS, "w"),
        numpy_helper.from_array(np.array([1], np.int64), "axes"),
    ]
    graph = helper.make_graph(nodes, "handmade", [x], outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())
