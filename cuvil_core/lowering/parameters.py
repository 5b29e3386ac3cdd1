"""The buffer parameters of a kernel in the making."""

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Buffer, Use
from cuvil_core.lowering.placement import Placement
from cuvil_core.program import Buffer as ProgramBuffer


class Parameters:
    """Program buffers → parameter names `b0`, `b1`, … in order of first use, so that equal kernels print equally."""

    def __init__(self, buffers: dict[str, ProgramBuffer]) -> None:
        self._buffers = buffers
        self._uses: dict[str, Use] = {}

    def name(self, place: Placement, use: Use) -> str:
        """The parameter of the buffer in which a value lies."""
        known = self._uses.get(place.buffer)
        self._uses[place.buffer] = use if known in (None, use) else Use.UPDATE
        return f"b{list(self._uses).index(place.buffer)}"

    def size(self, place: Placement) -> Dim:
        """Elements of the buffer in which a value lies."""
        return self._buffers[place.buffer].size

    @property
    def arguments(self) -> tuple[str, ...]:
        """Program buffers in parameter order."""
        return tuple(self._uses)

    def declared(self) -> tuple[Buffer, ...]:
        """The parameters."""
        return tuple(
            Buffer(f"b{position}", self._buffers[name].dtype, self._buffers[name].size, use)
            for position, (name, use) in enumerate(self._uses.items())
        )
