"""Which CuvilModel a turn is about."""

from typing import NamedTuple


class ModelKey(NamedTuple):
    """Namespace and name: what events carry and the queue holds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
