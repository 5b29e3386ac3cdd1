"""One look at the world for one CuvilModel.

Holds: which objects are read (a bounded number a turn), and what their fields mean, kind by kind.
Takes the gateways and a key → gives one frozen Observed, or None where the model is gone.
Must not write, remember former looks, or judge what it sees.
"""

from cuvil_operator.observe.observer import Look, Observer

__all__ = ["Look", "Observer"]
