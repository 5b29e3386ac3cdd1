"""Names of tensors: each graph and each block has a scope, and looks outward for what it lacks."""

from collections.abc import Callable, Mapping

from cuvil_core.importer.onnx.tensor import Tensor

Capture = Callable[[Tensor], Tensor]
"""A tensor of the outside → what stands for it inside."""


class Scope:
    """What the nodes of one graph see; names of its own hide those of the outside."""

    def __init__(
        self, known: Mapping[str, Tensor], outer: "Scope | None" = None, capture: Capture | None = None
    ) -> None:
        self._own = dict(known)
        self._outer, self._capture = outer, capture
        self._seen: dict[str, Tensor] = {}
        """What was found outside."""

    def find(self, name: str) -> Tensor | None:
        """The tensor of that name, None where no scope has it."""
        found = self._own.get(name) or self._seen.get(name)
        if found is None and self._outer is not None:
            found = self._outer.find(name)
            if found is not None:
                found = self._seen[name] = found if self._capture is None else self._capture(found)
        return found

    def owns(self, name: str) -> bool:
        """True where the name was defined here."""
        return name in self._own

    def define(self, name: str, tensor: Tensor) -> None:
        """Give a tensor a name."""
        self._own[name] = tensor
