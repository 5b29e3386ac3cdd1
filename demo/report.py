"""The page that the demonstration leaves: facts, timeline and plots of weight, p95 and error rate of each rollout."""

import base64
import html
import io
import itertools
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot

from e2e.stories.timeline import WINDOW, Moment, Played, Plots
from e2e.stories.world import ERROR_RATE, LATENCY_SECONDS

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}"
    "h2{margin-top:2.5rem}th{text-align:left}"
    "td,th{padding:.1rem .8rem .1rem 0;vertical-align:top;font-variant-numeric:tabular-nums}"
    "img{max-width:100%;height:auto}code{background:#eef2f5;padding:0 .25rem}"
)
PICTURE = "canary weight, p95 and error rate over time"
NOTE = (
    "A request counts when it is answered, and each point looks back over the window: what was asked before the weight "
    "fell is still answered, and seen, a little after."
)


@dataclass(frozen=True, slots=True)
class Chapter:
    """One story of the page."""

    title: str
    facts: list[str]
    played: Played | None = None
    plots: Plots | None = None


def write(path: Path, chapters: list[Chapter]) -> None:
    """Write the page; pictures are inside it, so that the file can be sent as it is."""
    body = "".join(_chapter(chapter) for chapter in chapters)
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>Cuvil: four rollouts</title><style>{STYLE}</style>"
    path.write_text(f"{head}<h1>Cuvil: four rollouts</h1><p>{NOTE}</p>{body}\n")


def _chapter(chapter: Chapter) -> str:
    facts = "".join(f"<li>{html.escape(fact)}" for fact in chapter.facts)
    rows = _rows(chapter.played.timeline.moments, chapter.played.timeline.began) if chapter.played else ""
    picture = _picture(chapter.plots, chapter.played.timeline.began) if chapter.plots and chapter.played else ""
    return f"<h2>{html.escape(chapter.title)}</h2><ul>{facts}</ul>{picture}<table>{rows}</table>"


def _rows(moments: list[Moment], began: float) -> str:
    head = "<tr><th>after<th>phase<th>canary<th>what was decided, and why"
    return head + "".join(
        f"<tr><td>{moment.at - began:.1f} s<td>{html.escape(moment.phase)}<td>{moment.weight} %"
        f"<td>{html.escape(moment.message)}"
        for moment in moments
    )


def _picture(plots: Plots, began: float) -> str:
    figure, axes = pyplot.subplots(3, 1, sharex=True, figsize=(8, 5), layout="constrained")
    panels = (
        ("canary weight, %", plots.weight, 1.0, None),
        (f"canary p95, ms\n(last {WINDOW})", plots.p95, 1000.0, LATENCY_SECONDS),
        (f"canary errors, %\n(last {WINDOW})", plots.errors, 100.0, ERROR_RATE),
    )
    for axis, (label, series, scale, limit) in zip(axes, panels, strict=True):
        times = [at - began for at, _ in series]
        axis.plot(times, [scale * value for _, value in series], drawstyle="steps-post" if limit is None else "default")
        if limit is not None:
            axis.axhline(scale * limit, color="tab:red", linestyle="--", linewidth=1, label="SLO")
            axis.legend(loc="upper left")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        for at in _ends(plots.weight):
            axis.axvline(at - began, color="grey", linestyle=":", linewidth=1)
    axes[-1].set_xlabel("seconds since the new version was applied; dotted: its weight goes to 0")
    out = io.BytesIO()
    figure.savefig(out, format="svg")
    pyplot.close(figure)
    # As an image, so that the ids within one picture do not meet those of another.
    return f'<img alt="{PICTURE}" src="data:image/svg+xml;base64,{base64.b64encode(out.getvalue()).decode()}">'


def _ends(weight: list[tuple[float, float]]) -> list[float]:
    """Give the moments at which the weight falls to zero."""
    return [at for (_, before), (at, now) in itertools.pairwise(weight) if before > 0 and now == 0]
