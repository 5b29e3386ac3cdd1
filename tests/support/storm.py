"""A rollout in a storm: a seeded row of spec changes, orders, faults and kills, then calm.

In the storm the story's invariants hold at every write and every second. After it, within SETTLE seconds, the model
must be at rest where its last spec and its quarantine say, with nothing left over.
"""

import random
from dataclasses import dataclass, field
from fractions import Fraction

from cluster_life import Behaviour
from cuvil_core.contract import ExitCode
from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelStatus
from cuvil_operator.conventions import Phase, Verb
from cuvil_operator.gateways.protocols import SourceFault
from cuvil_operator.gateways.resources import PODS
from story import NAMESPACE, Story, failure, spec

MODELS = ("good-1", "good-2", "good-3", "erring", "slow", "crashing", "wrong", "unsupported")
SETTLE = 900
AT_REST = {Phase.STABLE, Phase.ROLLED_BACK, Phase.BLOCKED}


def _rests(status: CuvilModelStatus) -> bool:
    """A first revision that never becomes ready has nothing to go back to: it is Stalled for good."""
    alone = status.stable is None and status.phase == Phase.STALLED
    return alone or (status.phase in AT_REST and status.canary is None)


@dataclass(slots=True)
class Storm:
    """One seeded storm."""

    seed: int
    routed: bool
    acts: int = 12
    dice: random.Random = field(init=False)
    story: Story = field(init=False)
    model: str = "good-1"

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        kills = sorted(self.dice.sample(range(1, 500), 40))
        self.story = Story(kills=kills, down_seconds=self.dice.choice((0, 0, 3, 15)))
        self.story.behave("erring", Behaviour(errors=Fraction(1, 4)))
        self.story.behave("slow", Behaviour(slow=Fraction(1, 3)))
        self.story.behave("crashing", Behaviour(starts=False))
        self.story.ends("validate", "wrong", failure(ExitCode.WRONG_NUMBERS, "output y is off"))
        self.story.ends("compile", "unsupported", failure(ExitCode.UNSUPPORTED_OP, "op Foo"))

    def run(self) -> Story:
        """Rage, then settle; AssertionError with the whole story where anything is amiss."""
        story = self.story
        self._apply()
        for _ in range(self.acts):
            story.run(self.dice.choice((0, 1, 2, 3, 5, 8, 13, 30, 60)))
            self.dice.choice((self._apply, self._apply, self._order, self._order, self._blind, self._lose_pods))()
        story.prometheus.fault, story.prometheus.silent = None, False
        story.outage(False).say("calm").run(1)
        self._end_pauses()
        story.until(_rests, SETTLE).run(30)
        self._check_rest()
        return story

    def _spec(self) -> dict[str, object]:
        steps = [{"weight": 20, "hold": "10s"}, {"weight": 50, "hold": "15s"}]
        whole = spec(self.model, serving__replicas=3, rollout__steps=steps, rollout__progressDeadline="1m")
        if not self.routed:
            whole["rollout"].pop("traffic")
        return whole

    def _apply(self) -> None:
        self.model = self.dice.choice(MODELS)
        self.story.apply(self._spec())

    def _order(self) -> None:
        verb = self.dice.choice(list(Verb))
        letter = self.dice.choice([*self.story.aliases.values(), "latest"])
        self.story.command(f"{verb.value}@{letter}#{self.dice.randrange(10**6)}")

    def _blind(self) -> None:
        self.story.prometheus.fault = self.dice.choice([None, None, *SourceFault])
        self.story.prometheus.silent = self.dice.random() < 0.2
        self.story.say(f"Prometheus: {self.story.prometheus.fault}, silent {self.story.prometheus.silent}")

    def _lose_pods(self) -> None:
        pods = [pod for pod in self.story.life.counters if self.dice.random() < 0.4]
        # one pod at a time, as a budget allows; what needs it is looked away from until it is back
        for pod in pods[:1]:
            self.story.outage(True).say(f"pod {pod[-3:]} is lost")
            self.story.kubernetes.remove(PODS, NAMESPACE, pod)
            self.story.run(6)
            self.story.outage(False)

    def _end_pauses(self) -> None:
        self.story.command(f"resume@latest#{self.seed}").run(2)

    def _check_rest(self) -> None:
        story, status = self.story, self.story.status
        weights = story.life.weights()
        if status.stable is None:
            assert status.phase in (Phase.ROLLED_BACK, Phase.BLOCKED, Phase.STALLED), story.text
            return
        assert weights == {status.stable.revision: 100}, story.text
        assert len(story.life.ready_pods(status.stable.revision)) == 3, story.text
        kinds = [one["kind"] for one in story.kubernetes.all()]
        assert (kinds.count("Deployment"), kinds.count("Service")) == (1, 2), story.text
        kept = 1 + len(status.history) + 1
        assert kinds.count("ConfigMap") <= kept, story.text
        quarantined = {one.revision for one in status.quarantine}
        assert status.stable.revision == status.revision or status.phase != Phase.STABLE, story.text
        assert status.phase != Phase.ROLLED_BACK or status.revision in quarantined, story.text
        assert len(story.rollbacks) == len(set(story.rollbacks)), story.text
        phases = {one.split(" s  ")[1].split()[0] for one in story.lines if " s  " in one and "--" not in one}
        assert phases <= {one.value for one in names.Phase}, story.text
