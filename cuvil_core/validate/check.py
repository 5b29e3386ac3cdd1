"""The three steps: numbers, speed, memory."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuvil_core.contract import LatencyReport, MemoryReport, OutputError, ValidationReport
from cuvil_core.errors import AccuracyError, InputError, ModelError
from cuvil_core.runtime import CuvilModule
from cuvil_core.runtime.examples import shapes_at
from cuvil_core.validate.golden import Case
from cuvil_core.validate.inputs import STYLES, Style, draw, size_choices
from cuvil_core.validate.numbers import compare, magnitude, worse
from cuvil_core.validate.oracle import Oracle
from cuvil_core.validate.speed import RUNS, WARM_UP, measure_pair

Array = NDArray[Any]
Inputs = dict[str, Array]
Progress = Callable[[str, float], None]
SEEDS = (11, 12, 13)
TRIES = 3
SIZES = 3
"""Different sizes of symbolic extents that are checked, where the bounds allow them."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an artifact must keep."""

    rtol: float = 1e-3
    atol: float = 1e-4
    latency_ms: float | None = None
    """For the median of single calls."""
    max_ratio: float = 1.05
    """Median over the baseline's median, where there is a baseline."""
    runs: int = RUNS
    warm_up: int = WARM_UP


@dataclass(frozen=True, slots=True)
class Checked:
    """A report and what a reader should know about it."""

    report: ValidationReport
    notes: tuple[str, ...]


@dataclass
class _Findings:
    """Results beside their references, by output, over all cases."""

    pairs: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict)
    varies: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Sizes that the source model takes and the artifact does not."""

    def add(self, got: Inputs, want: Inputs) -> None:
        """Keep a case."""
        for name, reference in want.items():
            self.pairs.setdefault(name, []).append((got[name], reference))

    def judge(self, limits: Limits) -> tuple[OutputError, ...]:
        """Give each output's greatest error.

        Its magnitude is that over all cases: seeds may yield one case in which an output nearly vanishes, where single
        precision itself is further off than a bound by that case's magnitude.
        """
        return tuple(self._judge(name, pairs, limits) for name, pairs in self.pairs.items())

    def _judge(self, name: str, pairs: list[tuple[Array, Array]], limits: Limits) -> OutputError:
        scale = magnitude(want for _, want in pairs)
        return functools.reduce(
            worse, (compare(name, got, want, limits.rtol, limits.atol, scale) for got, want in pairs)
        )


def check(
    module: CuvilModule,
    oracle: Oracle | None,
    limits: Limits,
    *,
    model_sha256: str,
    golden: list[Case] | None = None,
    baseline: CuvilModule | None = None,
    progress: Progress = lambda stage, part: None,
) -> Checked:
    """Compare with the golden cases, else with the oracle; then time and weigh.

    Raises AccuracyError when nothing could be compared; what lies outside the limits is in the report, not raised.
    """
    findings = _Findings()
    progress("numbers", 0.0)
    if golden is not None:
        cases = [inputs for inputs, _ in golden]
        for inputs, want in golden:
            findings.add(module.run(inputs), want)
    elif oracle is not None:
        cases = _compare_with(module, oracle, findings, progress)
    else:
        raise InputError("nothing to compare with was passed, wanted the source model or a golden file")
    progress("speed", 0.6)
    latency = _time(module, baseline, _longest(cases), limits)
    memory = MemoryReport(module.report.weight_bytes, max(module.arena_bytes(one) for one in cases))
    outputs = findings.judge(limits)
    digest = module.artifact.sha256()
    report = ValidationReport(digest, model_sha256, limits.rtol, limits.atol, outputs, latency, memory)
    progress("done", 1.0)
    return Checked(report, tuple(findings.notes))


def _compare_with(module: CuvilModule, oracle: Oracle, findings: _Findings, progress: Progress) -> list[Inputs]:
    """Compare at up to SIZES sizes with all SEEDS; give one set of inputs of each size."""
    cases: list[Inputs] = []
    for turn, (style, choice) in enumerate(_accepted(module, oracle, findings)):
        outputs: list[Inputs] = []
        shapes = shapes_at(module.signature.inputs, choice)
        for seed in SEEDS:
            inputs = draw(module.signature.inputs, shapes, style, seed)
            outputs.append(oracle.run(inputs))
            findings.add(module.run(inputs), outputs[-1])
        cases.append(inputs)
        for name in outputs[0]:
            findings.varies[name] = findings.varies.get(name, False) or _vary([one[name] for one in outputs])
        progress("numbers", 0.6 * (turn + 1) / SIZES)
    if findings.refused:
        count, first = len(findings.refused), findings.refused[0]
        findings.notes.append(f"the artifact refuses {count} of the sizes that the source model takes, as {first}")
    if not cases:
        raise AccuracyError(
            "no size was found that both the source model and the artifact take; pass bounds or a golden file"
        )
    constant = [name for name, varies in findings.varies.items() if not varies]
    findings.notes += [f"output {name!r} is the same for every input tried, so it proves little" for name in constant]
    return cases


def _accepted(module: CuvilModule, oracle: Oracle, findings: _Findings) -> Iterator[tuple[Style, dict[str, int]]]:
    """Yield up to SIZES choices of sizes that both take, with a style of values on which outputs vary."""
    specs, found = module.signature.inputs, 0
    for choice in size_choices(specs, module.symbols) if module.symbols else iter([{}]):
        style = _style(module, oracle, choice, findings)
        if style is not None:
            found += 1
            yield style, choice
        if found == SIZES:
            return


def _style(module: CuvilModule, oracle: Oracle, choice: dict[str, int], findings: _Findings) -> Style | None:
    """Give the first style that both take and that moves an output; else the first that both take; else None."""
    shapes, taken = shapes_at(module.signature.inputs, choice), None
    for style in STYLES:
        one, two = (draw(module.signature.inputs, shapes, style, seed) for seed in SEEDS[:2])
        try:
            first, second = oracle.run(one), oracle.run(two)
        except ModelError:
            continue
        try:
            module.run(one)
        except InputError as fault:
            findings.refused.append(f"{choice}: {fault}")
            return None
        if all(_vary([first[name], second[name]]) for name in first):
            return style
        taken = taken or style
    return taken


def _vary(values: list[Array]) -> bool:
    return any(one.shape != values[0].shape or not np.array_equal(one, values[0], equal_nan=True) for one in values[1:])


def _longest(cases: list[Inputs]) -> Inputs:
    """Give the largest case of the smallest batch: a single request of an ordinary size."""

    def key(inputs: Inputs) -> tuple[int, int]:
        batch = max((one.shape[0] for one in inputs.values() if one.ndim), default=1)
        return -batch, sum(one.size for one in inputs.values())

    return max(cases, key=key)


def _time(module: CuvilModule, baseline: CuvilModule | None, inputs: Inputs, limits: Limits) -> LatencyReport:
    """Time until it is within the limits, at most TRIES times: a noisy neighbour must not fail an artifact."""
    for _ in range(TRIES):
        report = _time_once(module, baseline, inputs, limits)
        if report.within:
            break
    return report


def _time_once(module: CuvilModule, baseline: CuvilModule | None, inputs: Inputs, limits: Limits) -> LatencyReport:
    other = None if baseline is None else lambda: baseline.run(inputs)
    own, base = measure_pair(lambda: module.run(inputs), other, limits.runs, limits.warm_up)
    within = limits.latency_ms is None or own.p50_ms <= limits.latency_ms
    if base is not None:
        within = within and own.p50_ms <= limits.max_ratio * base.p50_ms
    return LatencyReport(
        own.p50_ms, own.p90_ms, own.runs, None if base is None else base.p50_ms, limits.latency_ms, within
    )
