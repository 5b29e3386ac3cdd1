"""`cuvil verify`: the three steps of the proof, and the report."""

import argparse
import contextlib
from typing import Any

from cuvil_core.artifact import publish
from cuvil_core.cli.console import Console, Failed, Result, size_text, table
from cuvil_core.cli.sources import check_source, local_artifact, local_model
from cuvil_core.contract import OutputError, ValidationReport
from cuvil_core.errors import AccuracyError, InputError, SpeedError
from cuvil_core.runtime import CuvilModule, load, thread_count
from cuvil_core.validate import Checked, Limits, Oracle, check, read_golden
from cuvil_core.validate.golden import LIMIT as GOLDEN_LIMIT


def verify_command(given: argparse.Namespace, console: Console) -> Result:
    """Compare an artifact with its source model or a golden file, time it, weigh it."""
    if given.model is None and given.golden is None:
        raise InputError("nothing to compare with was named; pass --model or --golden")
    limits = Limits(given.rtol, given.atol, given.latency_limit_ms, given.max_ratio, given.runs, given.warm_up)
    with contextlib.ExitStack() as stack:
        module = _load(stack, given.artifact, given, given.sha256)
        baseline = _load(stack, given.baseline, given, None) if given.baseline else None
        checked = _check(stack, given, module, baseline, limits, console)
    report = checked.report
    if given.report is not None:
        publish(report.to_json().encode(), given.report)
    result = Result(describe(checked), digest(report))
    if not all(one.within for one in report.outputs):
        worst = worst_output(report)
        raise Failed(
            AccuracyError(
                f"output {worst.name!r} is off by {worst.max_rel:.2g} of its magnitude, beyond rtol {report.rtol:g} "
                f"and atol {report.atol:g}; widen the bound, or report it with the model"
            ),
            result,
        )
    if not report.latency.within:
        raise Failed(SpeedError(_slow(report)), result)
    return result


def digest(report: ValidationReport) -> dict[str, Any]:
    """Give what fits into a termination message and the record of a revision."""
    worst, latency = worst_output(report), report.latency
    return {
        "artifact_sha256": report.artifact_sha256,
        "model_sha256": report.model_sha256,
        "passed": report.passed,
        "worst_output": worst.name,
        "max_abs": _finite(worst.max_abs),
        "max_rel": _finite(worst.max_rel),
        "p50_ms": latency.p50_ms,
        "p90_ms": latency.p90_ms,
        "baseline_p50_ms": latency.baseline_p50_ms,
        "weights": report.memory.weights,
        "peak_activations": report.memory.peak_activations,
    }


def worst_output(report: ValidationReport) -> OutputError:
    """Give the output that lies furthest off, those outside the bound first."""
    return max(report.outputs, key=lambda one: (not one.within, one.max_rel))


def describe(checked: Checked) -> str:
    """Give the report for people."""
    report, latency = checked.report, checked.report.latency
    rows = [
        (one.name, f"{'ok ' if one.within else 'OFF'} max error {one.max_abs:.3g}, {one.max_rel:.3g} of its magnitude")
        for one in report.outputs
    ]
    rows.append(("latency", f"p50 {latency.p50_ms:.3f} ms, p90 {latency.p90_ms:.3f} ms of {latency.runs} runs"))
    if latency.baseline_p50_ms:
        ratio = latency.p50_ms / latency.baseline_p50_ms
        rows.append(("baseline", f"p50 {latency.baseline_p50_ms:.3f} ms, ratio {ratio:.3f}"))
    weights, activations = size_text(report.memory.weights), size_text(report.memory.peak_activations)
    rows.append(("memory", f"weights {weights}, activations at most {activations}"))
    return "\n".join([table(rows), *(f"note: {note}" for note in checked.notes)])


def _check(
    stack: contextlib.ExitStack,
    given: argparse.Namespace,
    module: CuvilModule,
    baseline: CuvilModule | None,
    limits: Limits,
    console: Console,
) -> Checked:
    oracle, golden = None, None
    if given.golden is not None:
        narrow = argparse.Namespace(**{**vars(given), "max_bytes": min(given.max_bytes, GOLDEN_LIMIT)})
        golden = read_golden(stack.enter_context(local_model(given.golden, narrow, None)), module.artifact.manifest)
    else:
        path = stack.enter_context(local_model(given.model, given, given.model_sha256))
        oracle = Oracle(path, thread_count())
        check_source(path, module.report.model_sha256)
    progress = stack.enter_context(console.progress("verify"))
    source = given.model_sha256 or module.report.model_sha256
    return check(module, oracle, limits, model_sha256=source, golden=golden, baseline=baseline, progress=progress)


def _load(stack: contextlib.ExitStack, text: str, given: argparse.Namespace, sha256: str | None) -> CuvilModule:
    return load(stack.enter_context(local_artifact(text, given, sha256)), limit=given.max_bytes)


def _slow(report: ValidationReport) -> str:
    latency = report.latency
    if latency.limit_ms is not None and latency.p50_ms > latency.limit_ms:
        return f"the median call takes {latency.p50_ms:.3f} ms, beyond {latency.limit_ms:g} ms; give more CPU or time"
    return (
        f"the median call takes {latency.p50_ms:.3f} ms, too long beside the baseline's "
        f"{latency.baseline_p50_ms or 0:.3f} ms; keep the baseline or allow a greater --max-ratio"
    )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
