"""A rollout's life as text: the real turn (observe → decide → act → status) on a played cluster, second by second.

Each line is one turn that changed what people see or what is written:

    +  12 s  Progressing StepReached          A 95 B  5   step 1/3: 5% of the traffic is on revision B
                 apply Deployment m-B

Revisions are named A, B, C … in order of appearance. Invariants are checked after every write and every second.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from cluster_life import Behaviour, ClusterLife, peek
from cuvil_core.contract import ExitCode, Outcome
from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus
from cuvil_operator.errors import RetryError
from cuvil_operator.facts import Images, ModelKey, Platform
from cuvil_operator.gateways.failures import KubernetesDenied
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes, Write
from cuvil_operator.metrics import Metrics
from cuvil_operator.reconcile import Reconciler
from fake_clock import FakeClock
from fake_prometheus import FakePrometheus
from invariants import Invariants

NAMESPACE = "vision"
PLATFORM = Platform(Images("registry/compiler@sha256:c1", "registry/runtime@sha256:r1"), "registry:5000/cuvil")
AT_ONCE = 40
"""Turns without time passing, after which a story says that the controller spins."""


class Killed(BaseException):
    """The controller's process is gone; no handler of the product may catch it."""


def sha(text: str) -> str:
    """Give the sha256 by which a story names a model file."""
    return hashlib.sha256(text.encode()).hexdigest()


def spec(model: str = "good-1", **changes: Any) -> dict[str, Any]:
    """Give a spec with short steps; a change is a path with `__` for the dots: slo__errorRate="1%"."""
    whole: dict[str, Any] = {
        "model": {"uri": f"https://models.example/{model}.onnx", "sha256": sha(model), "format": "onnx"},
        "target": "x86_64-cpu",
        "serving": {"replicas": 4},
        "slo": {"errorRate": "1%", "latency": {"percentile": 95, "threshold": "800ms"}},
        "rollout": {
            "steps": [{"weight": 10, "hold": "30s"}, {"weight": 50, "hold": "30s"}],
            "analysis": {"interval": "10s"},
            "progressDeadline": "2m",
            "traffic": {"gateway": {"name": "public"}},
        },
    }
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = whole
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return whole


@dataclass(slots=True)
class Story:
    """One CuvilModel (or several) in one namespace."""

    name: str = "m"
    clock: FakeClock = field(default_factory=FakeClock)
    kubernetes: FakeKubernetes = field(init=False)
    life: ClusterLife = field(init=False)
    prometheus: FakePrometheus = field(init=False)
    platform: Platform = PLATFORM
    endings: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    """(stage, model sha256) → outcomes, one a Job; the last one stays. Others succeed."""
    lines: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    kills: list[int] = field(default_factory=list)
    """Numbers of writes that change something (1-based, over the whole story) after which the controller is killed."""
    down_seconds: float = 0.0  # for how long nobody controls after a kill
    denied: set[str] = field(default_factory=set)
    """Kinds that the controller may not write."""
    turns: int = 0
    writes: int = 0
    rollbacks: list[str] = field(default_factory=list)
    _reconciler: Reconciler = field(init=False)
    _shown: tuple[str, ...] = ()
    _due: float = 0.0
    _down_until: float = 0.0
    _changed: bool = True
    _wrote: list[Write] = field(default_factory=list)
    _asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    _invariants: Invariants = field(default_factory=Invariants)
    _changed_by_write: bool = False
    _read: dict[tuple[str, str], tuple[CuvilModelSpec, CuvilModelStatus]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kubernetes = FakeKubernetes(self.clock)
        self.life = ClusterLife(self.kubernetes, self.clock, self._job_ends)
        self.prometheus = FakePrometheus(self.life)
        self.kubernetes.on_change.append(lambda kind, document: self._note_change())
        self.kubernetes.before_write = self._before_write
        self.kubernetes.after_write = self._after_write
        self._start_controller()

    # What people do

    def apply(self, wanted: dict[str, Any], say: str = "") -> "Story":
        """Apply a CuvilModel as a user does."""
        self._put(wanted, {})
        self._tell(say or f"the spec asks for {wanted['model']['uri'].rpartition('/')[2]}")
        return self

    def command(self, text: str) -> "Story":
        """Order by annotation; a revision may be named by its letter."""
        verb, _, rest = text.partition("@")
        letter, _, nonce = rest.partition("#")
        revision = next((one for one, alias in self.aliases.items() if alias == letter), letter)
        self._put(self._asked[self.name], {names.ANNOTATION_COMMAND: f"{verb}@{revision}#{nonce}" if rest else text})
        self._tell(f"somebody orders {text}")
        return self

    def behave(self, model: str, behaviour: Behaviour) -> "Story":
        """Say how a model's pods answer."""
        self.life.behaviours[sha(model)] = behaviour
        return self

    def ends(self, stage: str, model: str, *outcomes: Outcome) -> "Story":
        """Say how the Jobs of a stage and model end."""
        self.endings[(stage, sha(model))] = list(outcomes)
        return self

    def say(self, text: str) -> "Story":
        """Note what the story does to the world."""
        self._tell(text)
        return self

    # Time

    def run(self, seconds: float) -> "Story":
        """Let time pass."""
        asyncio.run(self._run(seconds, lambda: False))
        return self

    def until(self, condition: Callable[[CuvilModelStatus], bool], limit: float = 600) -> "Story":
        """Let time pass until status meets the condition; AssertionError with the story so far when it never does."""
        asyncio.run(self._run(limit, lambda: condition(self.status)))
        assert condition(self.status), f"not within {limit} s\n{self.text}"
        return self

    def until_phase(self, *phases: names.Phase, limit: float = 600) -> "Story":
        """Let time pass until one of the phases is reached, and what is due at once is done."""
        return self.until(lambda status: status.phase in phases, limit)

    @property
    def status(self) -> CuvilModelStatus:
        """The status as stored."""
        document = self._model(self.name)
        return self._parsed(document)[1] if document else CuvilModelStatus()

    @property
    def text(self) -> str:
        """The story so far."""
        return "\n".join(self.lines) + "\n"

    @property
    def stable(self) -> str:
        """The letter of stable; AssertionError when there is none."""
        assert self.status.stable, self.text
        return self._alias(self.status.stable.revision)

    @property
    def weights(self) -> dict[str, int]:
        """Letter of each revision with a share of the traffic → its weight."""
        return {self._alias(one): weight for one, weight in self.life.weights().items()}

    def end_state(self) -> dict[str, Any]:
        """What a story is about in the end, without times and counts: equal for equal stories, however they went."""
        status = self.status
        return {
            "phase": status.phase,
            "stable": status.stable and self._alias(status.stable.revision),
            "canary": status.canary and self._alias(status.canary.revision),
            "history": [self._alias(one.revision) for one in status.history],
            "quarantine": [(self._alias(one.revision), one.reason) for one in status.quarantine],
            "rollback": status.rollback and (self._alias(status.rollback.revision), status.rollback.reason),
            "weights": self.weights,
            "objects": sorted(
                f"{one['kind']} {self._alias_all(one['metadata']['name'])}"
                for one in self.kubernetes.all()
                if one["kind"] not in ("Event", "Pod")
            ),
        }

    # Inside

    async def _run(self, seconds: float, over: Callable[[], bool]) -> None:
        end = self.clock.monotonic() + seconds
        while True:
            await self._settle()
            if over() or self.clock.monotonic() >= end:
                return
            self.life.advance(1)
            self._check()

    async def _settle(self) -> None:
        for _ in range(AT_ONCE):
            now = self.clock.monotonic()
            if now < self._down_until or (not self._changed and now < self._due):
                return
            await self._turn()
        raise AssertionError(f"the controller spins\n{self.text}")

    async def _turn(self) -> None:
        self._changed, self._due, self._wrote = False, float("inf"), []
        self.turns += 1
        waits: list[timedelta] = []
        for name in list(self._asked):
            try:
                wait = await self._reconciler.turn(ModelKey(NAMESPACE, name))
            except RetryError:
                waits.append(timedelta(seconds=1))  # the queue backs off; a second is enough for a story
                continue
            except Killed:
                self._tell("the controller is killed")
                self._start_controller()
                self._due = self._down_until = self.clock.monotonic() + self.down_seconds
                return
            waits += [wait] if wait is not None else []
        if waits:
            self._due = self.clock.monotonic() + min(waits).total_seconds()
        self._show()
        self._check()

    def _start_controller(self) -> None:  # a killed process leaves nothing: all in memory is new, the cluster the same
        again = self.kubernetes.restarted()
        self._reconciler = Reconciler(again, self.prometheus, self.clock, self.platform, Metrics())

    def upgrade(self, images: Images) -> "Story":
        """Restart the controller with other images."""
        self.platform = replace(self.platform, images=images)
        self._start_controller()
        self._changed = True
        self._tell("the operator is upgraded")
        return self

    def _before_write(self, write: Write) -> None:
        self._changed_by_write = False
        if write.resource.kind in self.denied:
            raise KubernetesDenied(f"{write.verb} {write.resource.kind} {write.name} is denied")

    def _after_write(self, write: Write) -> None:
        if not self._changed_by_write:
            # a restarted controller applies all once more, which changes nothing
            return
        self._changed_by_write = False
        self.writes += 1
        self._wrote.append(write)
        self._check()
        if self.writes in self.kills:
            raise Killed

    def _note_change(self) -> None:
        self._changed = self._changed_by_write = True

    def _put(self, wanted: dict[str, Any], annotations: dict[str, str]) -> None:
        self._asked[self.name] = wanted
        self.kubernetes.put(
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "metadata": {"name": self.name, "namespace": NAMESPACE, "annotations": annotations},
                "spec": wanted,
            }
        )

    def _job_ends(self, stage: str, job: dict[str, Any]) -> Outcome | None:
        arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
        text = " ".join(arguments)
        model = _after(arguments, "--model-sha256") or _after(arguments, "--sha256") or sha(_model_of(text))
        script = self.endings.get((stage, model))
        if script:
            return script.pop(0) if len(script) > 1 else script[0]
        return success(stage, model)

    # Telling

    def _show(self) -> None:
        for name in self._asked:
            document = self._model(name)
            status = self._parsed(document)[1] if document else CuvilModelStatus()
            self._name_revisions(status)
            ready = next((one for one in status.conditions if one.type == "Progressing"), None)
            seen = (name, status.phase or "", ready.reason if ready else "", status.message or "", self._weights())
            acts = self._acts()
            if seen[1:] == self._shown[1:] and not acts:
                continue
            self._shown = seen
            who = "" if len(self._asked) == 1 else f"{name:4}"
            self.lines.append(
                f"+{self.clock.monotonic():5.0f} s  {who}{seen[1]:12}{seen[2]:24}{seen[4]:12}{self._alias_all(seen[3])}"
            )
            self.lines += [f"{'':13}{one}" for one in acts]

    def _acts(self) -> list[str]:
        told = [
            f"{one.verb} {one.resource.kind} {self._alias_all(one.name)}"
            for one in self._wrote
            if one.resource.kind not in ("Event", names.KIND)
        ]
        self._wrote = []
        return list(dict.fromkeys(told))

    def _tell(self, text: str) -> None:
        self.lines.append(f"+{self.clock.monotonic():5.0f} s  -- {text}")

    def _weights(self) -> str:
        return " ".join(f"{one} {weight:3}" for one, weight in sorted(self.weights.items()))

    def _name_revisions(self, status: CuvilModelStatus) -> None:
        for one in (status.stable, status.canary):
            if one:
                self._alias(one.revision)
        if status.revision:
            self._alias(status.revision)

    def _alias(self, revision: str) -> str:
        return self.aliases.setdefault(revision, chr(ord("A") + len(self.aliases)))

    def _alias_all(self, text: str) -> str:
        for revision, alias in self.aliases.items():
            text = text.replace(revision, alias)
        return re.sub(r"\b[0-9a-f]{12,64}\b", "#", text)

    # Invariants

    def _check(self) -> None:
        document = self._model(self.name)
        if document is not None:
            wanted, status = self._parsed(document)
            self._invariants.check(self.life, wanted, status, self.text)
            self._note_rollback(status)

    def _note_rollback(self, status: CuvilModelStatus) -> None:
        if status.rollback:
            mark = f"{status.rollback.revision} {status.rollback.started_at}"
            if mark not in self.rollbacks:
                self.rollbacks.append(mark)

    def _parsed(self, document: dict[str, Any]) -> tuple[CuvilModelSpec, CuvilModelStatus]:
        meta = document["metadata"]
        key = (meta["name"], meta["resourceVersion"])
        if key not in self._read:
            status = CuvilModelStatus.from_dict(document.get("status") or {})
            self._read = {key: (CuvilModelSpec.from_dict(document["spec"]), status)}
        return self._read[key]

    def _model(self, name: str) -> dict[str, Any] | None:
        found = (one for one in peek(self.kubernetes, names.KIND) if one["metadata"]["name"] == name)
        return next(found, None)

    def outage(self, on: bool) -> "Story":
        """While on, pods are missing by the story's own hand: what needs them is not asserted."""
        self._invariants.outage = on
        return self


def success(stage: str, model: str) -> Outcome:
    """Give what a Job of the stage says when all is well."""
    if stage == "resolve":
        return Outcome(ExitCode.OK, "Resolved", "resolved", {"sha256": model, "size": 1000, "format": "onnx"})
    if stage == "compile":
        made = sha(f"artifact of {model}")
        result = {"reference": f"registry:5000/cuvil@sha256:{made}", "sha256": made, "size": 5000, "facts": {"ops": 3}}
        return Outcome(ExitCode.OK, "Compiled", "compiled", result)
    return Outcome(ExitCode.OK, "Validated", "proved", {"p50_ms": 3.0, "p90_ms": 4.0})


def failure(code: ExitCode, message: str) -> Outcome:
    """Give what a Job says when it fails."""
    return Outcome(code, "Failed", message)


def _after(arguments: list[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1] if flag in arguments else ""


def _model_of(text: str) -> str:
    found = re.search(r"models\.example/([\w\-]+)\.onnx", text)
    return found[1] if found else ""
