"""The rollout's mind: what to do next, given one look at the world.

Holds: ordered rules, the canary's steps, verbs, the analysis verdict, backoff, hashes of revisions and compile keys.
Takes Observed → gives Decision. Must not know a clock, the network, Kubernetes documents or kopf, nor trust anything
that is not in Observed.
"""

from cuvil_operator.decide.rules import decide

__all__ = ["decide"]
