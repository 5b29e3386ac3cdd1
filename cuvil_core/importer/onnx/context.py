"""What translations work with: emits primitives, broadcasts, records guards, turns known elements into data."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from cuvil_core.errors import ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx.known import known
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.scope import Scope
from cuvil_core.importer.onnx.tensor import MAX_CONTENT, Tensor, to_content
from cuvil_core.ir import (
    UNKNOWN,
    Attribute,
    Dim,
    DimLike,
    DType,
    GraphBuilder,
    Payload,
    Provenance,
    Relation,
    TensorType,
    Value,
    dim_max,
    is_from_data,
    product,
    spelling,
)

MAX_TENSOR_BYTES = 1 << 34
"""No tensor of a model that one machine serves is larger, whatever its symbols; a hostile one is refused here."""
MAX_EXTENT = (1 << 63) - 1


Walk = Callable[["Context", Scope, Iterable[Node]], None]
"""Translates nodes in a scope."""


class Context:
    """The state of one translation; `provenance` is the node at work."""

    def __init__(
        self,
        builder: GraphBuilder,
        rebatched: Mapping[str, int] | None = None,
        walk: Walk | None = None,
        folder: Path | None = None,
    ) -> None:
        self.builder = builder
        self.rebatched = rebatched or {}
        """Symbol that the caller put in place of a fixed extent of the file → that extent."""
        self.provenance: Provenance = UNKNOWN
        self.scope: Scope | None = None
        """The names that the node at work sees."""
        self._tally = [0]
        self.in_block = False
        """True for what control flow runs: extents that it computes would differ from turn to turn."""
        self.walk, self.folder = walk, folder
        """For subgraphs: how they are translated, and where their constants may lie."""

    def inner(self) -> "Context":
        """A context for a block of the node at work."""
        inner = Context(self.builder.inner(), self.rebatched, self.walk, self.folder)
        inner.provenance, inner._tally, inner.in_block = self.provenance, self._tally, True
        return inner

    @property
    def inlined(self) -> int:
        """Nodes of function bodies and subgraphs so far, in all blocks together."""
        return self._tally[0]

    @inlined.setter
    def inlined(self, count: int) -> None:
        self._tally[0] = count

    def emit(self, name: str, *operands: Tensor, **attributes: Attribute) -> Tensor:
        """One primitive with one result: an op of the graph, unless the result is known while importing.

        float16 is summed in float32 and rounded once, as runtimes do.
        """
        if _sums(name, attributes) and all(operand.dtype is DType.FLOAT16 for operand in operands):
            wide = (self.cast(operand, DType.FLOAT32) for operand in operands)
            return self.cast(self.emit(name, *wide, **attributes), DType.FLOAT16)
        found = known(name, operands, attributes)
        return self._computed(name, operands, attributes) if found is None else found

    def _computed(self, name: str, operands: Sequence[Tensor], attributes: Mapping[str, Attribute]) -> Tensor:
        values = [self.value(operand) for operand in operands]
        result = Tensor.of_value(self.builder.emit(name, values, attributes, self.provenance))
        self.check_size(result.type)
        return result

    def value(self, tensor: Tensor) -> Value:
        """The tensor as a value of the graph, made when it is first needed."""
        if tensor.value is not None:
            return tensor.value
        if tensor.items is not None:
            raise UnsupportedOpError("it hands on a sequence where only a call knows which; make it tensors")
        if tensor.recipe is not None:
            return self.value(self._computed(tensor.recipe.name, tensor.recipe.operands, tensor.recipe.attributes))
        if tensor.payload is not None:
            return self.builder.constant(tensor.payload, self.provenance)
        numbers = tensor.numbers()
        shape = tensor.type.static_shape
        if numbers is not None and shape is not None:
            return self.builder.constant(self._known(tensor.dtype, shape, numbers, tensor), self.provenance)
        return self._symbolic(tensor)

    def _known(self, dtype: DType, shape: tuple[int, ...], numbers: list[float | int], tensor: Tensor) -> Payload:
        exact = [dim.constant or 0 for dim in tensor.content.ravel()] if tensor.content is not None else []
        if dtype.is_float:
            return Payload.of(dtype, shape, [float(number) for number in numbers])
        return Payload.of(dtype, shape, [bool(n) for n in exact] if dtype is DType.BOOL else exact)

    def _symbolic(self, tensor: Tensor) -> Value:
        assert tensor.content is not None
        result = self.emit("dim_vector", dims=tuple(tensor.content.ravel()))
        return self.value(self.reshape(self.cast(result, tensor.dtype), tensor.shape))

    def scalar(self, dtype: DType, number: float | int) -> Tensor:
        """A rank-0 constant; UnsupportedOpError where the dtype does not hold the number, or loses its fraction."""
        if not dtype.is_float and not (isinstance(number, int) or number.is_integer()):
            raise UnsupportedOpError(f"it computes with {number} on {dtype}, which has no fractions; cast to a float")
        plain = float(number) if dtype.is_float else bool(number) if dtype is DType.BOOL else int(number)
        try:
            return Tensor.of_payload(Payload.scalar(dtype, plain))
        except ModelError as error:
            raise UnsupportedOpError(f"it computes with {number}, which {dtype} does not hold; cast before") from error

    def like(self, tensor: Tensor, number: float | int) -> Tensor:
        """A constant of the tensor's dtype, stretched to its shape."""
        return self.stretch(self.scalar(tensor.dtype, number), tensor.shape)

    def full(self, dtype: DType, number: float | int, shape: Sequence[DimLike]) -> Tensor:
        """One number everywhere."""
        return self.stretch(self.scalar(dtype, number), tuple(map(Dim.of, shape)))

    def stretch(self, tensor: Tensor, shape: tuple[Dim, ...]) -> Tensor:
        """broadcast_to unless the shape is right already."""
        return tensor if tensor.shape == shape else self.emit("broadcast_to", tensor, shape=shape)

    def reshape(self, tensor: Tensor, shape: Sequence[DimLike]) -> Tensor:
        """reshape with a guard where the numbers of elements cannot be proved equal."""
        target = tuple(map(Dim.of, shape))
        if tensor.shape == target:
            return tensor
        self.guard(tensor.type.elements, product(target))
        return self.emit("reshape", tensor, shape=target)

    def cast(self, tensor: Tensor, dtype: DType) -> Tensor:
        """cast unless the dtype is right already."""
        return tensor if tensor.dtype is dtype else self.emit("cast", tensor, dtype=dtype)

    def transpose(self, tensor: Tensor, perm: Sequence[int]) -> Tensor:
        """transpose unless the order is right already."""
        return tensor if tuple(perm) == tuple(range(tensor.rank)) else self.emit("transpose", tensor, perm=tuple(perm))

    def slice(self, tensor: Tensor, axis: int, start: DimLike, size: DimLike, step: int = 1) -> Tensor:
        """A range of one axis."""
        starts = [Dim.of(0)] * tensor.rank
        sizes, steps = list(tensor.shape), [1] * tensor.rank
        starts[axis], sizes[axis], steps[axis] = Dim.of(start), Dim.of(size), step
        if sizes[axis] == tensor.shape[axis] and starts[axis] == 0 and step == 1:
            return tensor
        return self.emit("slice", tensor, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """concat with guards where the other extents cannot be proved equal."""
        for tensor in tensors[1:]:
            for at, (a, b) in enumerate(zip(tensors[0].shape, tensor.shape, strict=False)):
                if at != axis:
                    self.guard(a, b)
        return tensors[0] if len(tensors) == 1 else self.emit("concat", *tensors, axis=axis)

    def reduce(self, kind: str, tensor: Tensor, axes: Sequence[int], keepdims: bool = True) -> Tensor:
        """reduce over the axes; with `keepdims` they stay with extent 1."""
        result = self.emit("reduce", tensor, kind=kind, axes=tuple(sorted(axes))) if axes else tensor
        return self.kept(result, tensor, axes) if keepdims else result

    def kept(self, reduced: Tensor, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        """The reduced tensor with the vanished axes back as extents of 1."""
        return self.reshape(reduced, [Dim.of(1) if axis in axes else e for axis, e in enumerate(tensor.shape)])

    def mean(self, tensor: Tensor, axes: Sequence[int], keepdims: bool = True) -> Tensor:
        """The sum over the axes by the number of elements."""
        total = self.reduce("sum", tensor, axes, keepdims=False)
        number = self.count(product(tensor.shape[axis] for axis in axes), tensor.dtype)
        mean = self.emit("div", total, self.stretch(number, total.shape))
        return self.kept(mean, tensor, axes) if keepdims else mean

    def count(self, number: Dim, dtype: DType) -> Tensor:
        """A dim as a rank-0 tensor of the dtype."""
        if number.constant is not None:
            return self.scalar(dtype, number.constant)
        return self.cast(self.reshape(self.emit("dim_vector", dims=(number,)), ()), dtype)

    def binary(self, name: str, a: Tensor, b: Tensor, **attributes: Attribute) -> Tensor:
        """A binary primitive with NumPy's broadcasting."""
        a, b = self.together(a, b)
        return self.emit(name, a, b, **attributes)

    def number(self, name: str, a: Tensor, b: float | int, **attributes: Attribute) -> Tensor:
        """A binary primitive with a number on the right."""
        return self.emit(name, a, self.like(a, b), **attributes)

    def together(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The operands stretched to their common shape."""
        for back in range(1, 1 + max(tensor.rank for tensor in tensors)):
            tensors = self._met(tensors, back)
        shape = self.common([tensor.shape for tensor in tensors])
        return tuple(self.stretch(tensor, shape) for tensor in tensors)

    def _met(self, tensors: tuple[Tensor, ...], back: int) -> tuple[Tensor, ...]:
        """Extents from data may be 1 and then stretch: along the axis counted from the back they become one extent."""
        extents = {tensor.shape[-back] for tensor in tensors if tensor.rank >= back and tensor.shape[-back] != 1}
        loose = sorted((extent for extent in extents if any(map(is_from_data, extent.symbols))), key=spelling)
        if len(extents) < 2 or not loose:
            return tensors
        firm = sorted(extents.difference(loose), key=spelling)
        meeting = firm[0] if firm else self.extent(self._greatest(loose))
        found = []
        for tensor in tensors:
            moves = tensor.rank >= back and tensor.shape[-back] in loose
            found.append(self._meet(tensor, tensor.rank - back, meeting) if moves else tensor)
        return tuple(found)

    def _greatest(self, extents: Sequence[Dim]) -> Tensor:
        """The extent that all which are not 1 must have."""
        one, *others = (self.count(extent, DType.INT64) for extent in extents)
        for other in others:
            one = self.emit("select", self.number("eq", one, 1), other, one)
        return one

    def _meet(self, tensor: Tensor, axis: int, extent: Dim) -> Tensor:
        """The tensor with its axis stretched where that is 1; it must be as long as the extent where it is not."""
        own, wanted = self.count(tensor.shape[axis], DType.INT64), self.count(extent, DType.INT64)
        single = self.number("eq", own, 1)
        fits = self.emit("or", single, self.emit("eq", own, wanted))
        self.check(fits, f"the extent {tensor.shape[axis]} is 1 or {extent}")
        line = self.emit("iota", shape=(extent,), axis=0, dtype=DType.INT64)
        places = self.emit("select", self.stretch(single, (extent,)), self.like(line, 0), line)
        return self.emit("gather", tensor, places, axis=axis)

    def common(self, shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
        """The shape to which all stretch; a guard is recorded where two extents cannot be proved equal."""
        rank = max(map(len, shapes))
        padded = [(Dim.of(1),) * (rank - len(shape)) + shape for shape in shapes]
        return tuple(self._common_extent(extents) for extents in zip(*padded, strict=True))

    def _common_extent(self, extents: tuple[Dim, ...]) -> Dim:
        wide = [extent for extent in extents if extent != 1]
        for other in wide[1:]:
            self.guard(wide[0], other)
        return min(wide, key=spelling, default=Dim.of(1))

    def quotient(self, extent: Dim, by: DimLike) -> Dim:
        """extent / by, which must be whole: a guard says so where that is not known, ModelError where it is not."""
        exact = extent.exact_div(by)
        if exact is not None:
            return exact
        self.guard(extent // by * by, extent)
        return extent // by

    def extent(self, tensor: Tensor) -> Dim:
        """One int64 as an extent: what is known of it, else a symbol that a call binds; ModelError below 0."""
        if tensor.content is not None:
            (content,) = tensor.content.ravel()
            found = Dim.of(content)
            if found.constant is not None and found.constant < 0:
                raise ModelError(f"it makes an extent of {found}")
            return found
        if self.in_block:
            raise UnsupportedOpError("within a loop or branch it makes an extent of its values; compute that outside")
        one = self.cast(self.reshape(tensor, ()), DType.INT64)
        return self.builder.bind(self.value(one), self.provenance, _symbol_base(self.provenance))

    def extents(self, vector: Tensor) -> list[Dim]:
        """The elements of a vector of fixed length as extents."""
        if vector.content is not None:
            return [
                self.extent(Tensor.of_content(vector.dtype, to_content([one], ()))) for one in vector.content.ravel()
            ]
        return [self.extent(self.slice(vector, 0, at, 1)) for at in range(self.length(vector))]

    def length(self, vector: Tensor) -> int:
        """The number of elements of a vector; UnsupportedOpError where that is not fixed."""
        extent = vector.shape[0].constant if vector.rank == 1 else None
        if extent is None:
            raise UnsupportedOpError("it takes its rank from the input's data; make that a constant")
        if extent > MAX_CONTENT:
            raise UnsupportedOpError(f"it reads {extent} settings from a vector, more than {MAX_CONTENT}; split it")
        return extent

    def check(self, condition: Tensor, text: str) -> None:
        """What must hold of a call's values, as one bool; `text` continues `the model's condition that …`."""
        self.emit("check", self.reshape(condition, ()), text=f"that {text} of {self.provenance}")

    def guard(self, left: DimLike, right: DimLike, relation: Relation = Relation.EQUAL) -> None:
        """Record what must hold; ModelError where it is known not to."""
        difference = (Dim.of(left) - right).constant
        broken = difference is not None and (difference != 0 if relation is Relation.EQUAL else difference > 0)
        if broken:
            raise ModelError(f"the extents {left} and {right} do not fit each other")
        self.builder.guard(left, right, relation, self.provenance)

    def guard_at_most(self, left: DimLike, right: DimLike) -> None:
        """Record that one extent does not exceed another."""
        self.guard(left, right, Relation.AT_MOST)

    def check_size(self, type: TensorType) -> None:
        """SizeError where even the least symbols make the tensor too large, or a content too long."""
        least = type.elements.bounds()[0] or 0
        if least * type.dtype.itemsize > MAX_TENSOR_BYTES:
            raise SizeError(f"{self.provenance} makes a tensor {type}, more than {MAX_TENSOR_BYTES} bytes.")
        if any(extent.constant is not None and extent.constant > MAX_EXTENT for extent in type.shape):
            raise SizeError(f"{self.provenance} makes a tensor {type} with an extent beyond 64 bits.")

    def dims(self, tensor: Tensor, what: str) -> list[Dim]:
        """The elements as dims; UnsupportedOpError where the model computes them from data."""
        if tensor.content is not None:
            return list(tensor.content.ravel())
        raise UnsupportedOpError(f"it takes {what} from the input's data; make that a constant or a function of shapes")

    def ints(self, tensor: Tensor, what: str) -> list[int]:
        """The elements as fixed integers; UnsupportedOpError where they are not constant."""
        constants = [dim.constant for dim in self.dims(tensor, what)]
        if None in constants:
            raise UnsupportedOpError(f"it takes {what} from the input's shape; make that a constant")
        return [constant for constant in constants if constant is not None]

    def numbers(self, tensor: Tensor, what: str) -> list[float | int]:
        """The elements as numbers, ints for integers; UnsupportedOpError where they are not constant."""
        numbers = tensor.numbers()
        if numbers is None:
            raise UnsupportedOpError(f"it takes {what} from no constant of up to {MAX_CONTENT} elements; make that one")
        return numbers


def _sums(name: str, attributes: Mapping[str, Attribute]) -> bool:
    """True for primitives whose error grows with the number of terms."""
    return name in ("dot", "conv") or (name in ("reduce", "window_reduce") and attributes["kind"] in ("sum", "prod"))


def _symbol_base(origin: Provenance) -> str:
    """Names by node stay the same from round to round."""
    return re.sub(r"\W+", "_", origin.node or origin.op_type, flags=re.ASCII).strip("_")[:32]


def resolve_axis(axis: int, rank: int) -> int:
    """A possibly negative axis counted from the front."""
    if not -rank <= axis < rank:
        raise ModelError(f"axis {axis} is outside of rank {rank}")
    return axis % rank


def resolve_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Possibly negative axes counted from the front, distinct."""
    found = tuple(resolve_axis(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise ModelError(f"the axes {list(axes)} name one twice")
    return found


def known_at_least(dim: Dim, least: int) -> bool:
    """True where the dim is at least the number for all symbols >= 1."""
    return dim_max(dim, least) == dim
