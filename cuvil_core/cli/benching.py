"""`cuvil bench`: the stopwatch for people."""

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

from cuvil_core.cli.console import Console, Result, table
from cuvil_core.cli.examples import random_inputs
from cuvil_core.cli.sources import check_source, local_artifact, local_model
from cuvil_core.errors import InputError
from cuvil_core.runtime import load, thread_count
from cuvil_core.validate import Latency, Oracle, measure_pair


def bench_command(given: argparse.Namespace, console: Console) -> Result:
    """Time an artifact, alone or in turn with another or with ONNX Runtime on the same threads."""
    if given.model and given.baseline:
        raise InputError("--model and --baseline were both passed; time one pair at a time")
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(local_artifact(given.artifact, given, given.sha256))
        module = load(path, variant=given.variant, limit=given.max_bytes)
        inputs = random_inputs(module, given)
        name, other = _other(stack, given, inputs, module.report.model_sha256)
        progress = stack.enter_context(console.progress("bench"))
        progress(f"{given.warm_up} + {given.runs} runs", 0.1)
        own, peer = measure_pair(lambda: module.run(inputs), other, given.runs, given.warm_up)
    report = module.report
    about = {"variant": report.variant, "threads": report.threads, "load_ms": report.load_ms, "runs": own.runs}
    rows = [("cuvil", _times(own))]
    data: dict[str, Any] = {
        "cuvil": _data(own),
        **about,
        "shapes": {key: list(one.shape) for key, one in inputs.items()},
    }
    if peer is not None:
        rows += [(name, _times(peer)), ("ratio", f"{own.p50_ms / peer.p50_ms:.3f} (below 1: cuvil is faster)")]
        data |= {name: _data(peer), "ratio": own.p50_ms / peer.p50_ms}
    shapes = ", ".join(f"{key} {list(one.shape)}" for key, one in inputs.items())
    rows.append(("setting", f"{shapes}; {report.variant}, {report.threads} threads, loaded in {report.load_ms:.1f} ms"))
    return Result(table(rows), data)


def _other(
    stack: contextlib.ExitStack, given: argparse.Namespace, inputs: dict[str, Any], made_from: str
) -> tuple[str, Callable[[], object] | None]:
    if given.model:
        path = stack.enter_context(local_model(given.model, given, None))
        oracle = Oracle(path, thread_count())
        check_source(path, made_from)
        return "onnxruntime", lambda: oracle.run(inputs)
    if given.baseline:
        base = load(stack.enter_context(local_artifact(given.baseline, given, None)), limit=given.max_bytes)
        return "baseline", lambda: base.run(inputs)
    return "", None


def _times(one: Latency) -> str:
    return f"p50 {one.p50_ms:.3f} ms, p90 {one.p90_ms:.3f} ms, least {one.least_ms:.3f} ms"


def _data(one: Latency) -> dict[str, float]:
    return {"p50_ms": one.p50_ms, "p90_ms": one.p90_ms, "least_ms": one.least_ms}
