"""What an entry of the table says, and the checks that all entries share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from cuvil_core.errors import ModelError, UnsupportedOpError
from cuvil_core.ir import Attribute, Block, Dim, DType, Payload, TensorType, spelling

Types = tuple[TensorType, ...]


class Group(Enum):
    """The families of primitives; a lowering rule exists for each group, an entry only where its ops differ."""

    LEAF = "leaf"
    UNARY = "unary"
    BINARY = "binary"
    TERNARY = "ternary"
    MOVEMENT = "movement"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    REGION = "region"
    EFFECT = "effect"
    LIBRARY = "library"
    CONTROL = "control"


class AttributeKind(Enum):
    """What an attribute may hold."""

    INTEGER = "an integer"
    INTEGERS = "a tuple of integers"
    DIMS = "a tuple of extents"
    TEXT = "a string"
    FLAG = "true or false"
    DTYPE = "a dtype"
    PAYLOAD = "a payload"

    def accepts(self, value: Attribute) -> bool:
        """True where the value is of this kind."""
        match self:
            case AttributeKind.INTEGER:
                return isinstance(value, int) and not isinstance(value, bool)
            case AttributeKind.INTEGERS:
                return isinstance(value, tuple) and all(isinstance(item, int) for item in value)
            case AttributeKind.DIMS:
                return isinstance(value, tuple) and all(isinstance(item, Dim) for item in value)
            case AttributeKind.TEXT:
                return isinstance(value, str)
            case AttributeKind.FLAG:
                return isinstance(value, bool)
            case AttributeKind.DTYPE:
                return isinstance(value, DType)
            case AttributeKind.PAYLOAD:
                return isinstance(value, Payload)


@dataclass(frozen=True, slots=True)
class Attributes:
    """Typed reading of checked attributes."""

    values: Mapping[str, Attribute]

    def integer(self, key: str) -> int:
        """An integer attribute."""
        value = self.values[key]
        assert isinstance(value, int)
        return value

    def integers(self, key: str) -> tuple[int, ...]:
        """A tuple of integers."""
        value = self.values[key]
        assert isinstance(value, tuple)
        return tuple(item for item in value if isinstance(item, int))

    def dims(self, key: str) -> tuple[Dim, ...]:
        """A tuple of dims."""
        value = self.values[key]
        assert isinstance(value, tuple)
        return tuple(Dim.of(item) for item in value)

    def text(self, key: str) -> str:
        """A string attribute."""
        value = self.values[key]
        assert isinstance(value, str)
        return value

    def dtype(self, key: str) -> DType:
        """A dtype attribute."""
        value = self.values[key]
        assert isinstance(value, DType)
        return value

    def payload(self, key: str) -> Payload:
        """A payload attribute."""
        value = self.values[key]
        assert isinstance(value, Payload)
        return value


Rule = Callable[[Types, Attributes], Types]
RegionRule = Callable[[Types, Attributes, Block], Types]
BlocksRule = Callable[[Types, Attributes, tuple[Block, ...]], Types]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One primitive of the table."""

    name: str
    group: Group
    operands: int | None
    """How many operands it takes; None for any number."""
    rule: Rule
    """Operand types and attributes → result types; its ModelErrors are completed with the op's name by `infer`."""
    attributes: Mapping[str, AttributeKind] = field(default_factory=dict)
    """All attributes; each is required."""
    region_rule: RegionRule | None = None
    """For ops with a body: used in place of `rule`."""
    blocks_rule: BlocksRule | None = None
    """For ops of control flow: used in place of `rule`."""

    def infer(
        self,
        operands: Types,
        attributes: Mapping[str, Attribute],
        region: Block | None,
        blocks: tuple[Block, ...] = (),
    ) -> Types:
        """Result types; ModelError names the op and what does not fit."""
        self._check(operands, attributes, region, blocks)
        read = Attributes(attributes)
        try:
            if self.blocks_rule is not None:
                return self.blocks_rule(operands, read, blocks)
            if self.region_rule is not None and region is not None:
                return self.region_rule(operands, read, region)
            return self.rule(operands, read)
        except Refusal as refusal:
            types = ", ".join(map(str, operands))
            if isinstance(refusal, DtypeRefusal):
                raise UnsupportedOpError(f"{self.name}({types}): {refusal}; correct it by a cast.") from refusal
            raise ModelError(f"{self.name}({types}): {refusal}; correct the shapes or types of the model.") from refusal

    def _check(
        self,
        operands: Types,
        attributes: Mapping[str, Attribute],
        region: Block | None,
        blocks: tuple[Block, ...],
    ) -> None:
        if self.operands is not None and len(operands) != self.operands:
            raise ModelError(f"{self.name} takes {self.operands} operands, not {len(operands)}; correct the model.")
        if (region is not None) != (self.region_rule is not None):
            raise ModelError(f"{self.name} {'has no' if region is not None else 'needs a'} region; correct the graph.")
        if blocks and self.blocks_rule is None:
            raise ModelError(f"{self.name} has no blocks; correct the graph.")
        if attributes.keys() != self.attributes.keys():
            named = ", ".join(sorted(attributes.keys() ^ self.attributes.keys()))
            raise ModelError(f"{self.name} lacks or does not have the attributes {named}; correct the graph.")
        for key, kind in self.attributes.items():
            if not kind.accepts(attributes[key]):
                raise ModelError(f"{self.name}: attribute {key} must be {kind.value}; correct the graph.")


class Refusal(Exception):
    """What does not fit, without the name of the op: `OpSpec.infer` turns it into a ModelError."""


class DtypeRefusal(Refusal):
    """A dtype for which a primitive has no meaning here, though a sound model may ask for it."""


def require_dtype(holds: bool, dtype: DType) -> None:
    """Go on when the primitive is defined for the dtype, else refuse."""
    if not holds:
        raise DtypeRefusal(f"{dtype} is not defined for it")


def require(holds: bool, fault: str) -> None:
    """Go on when the condition holds, else refuse."""
    if not holds:
        raise Refusal(fault)


def agree(a: Dim, b: Dim) -> Dim:
    """The simpler of two extents that must be equal; refuses what can be proved different.

    Where equality can be neither proved nor refuted the importer has recorded a guard.
    """
    if a == b:
        return a
    require((a - b).constant is None, f"the extents {a} and {b} differ")
    return simpler(a, b)


def simpler(a: Dim, b: Dim) -> Dim:
    """The one to go on with: a number before a symbol before a longer formula."""
    return min(a, b, key=spelling)


def agree_shapes(types: Types) -> tuple[Dim, ...]:
    """The common shape of operands that must have equal shapes."""
    first, *others = (type.shape for type in types)
    for shape in others:
        require(len(shape) == len(first), "the operands have different ranks")
        first = tuple(agree(a, b) for a, b in zip(first, shape, strict=True))
    return first


def check_axis(axis: int, rank: int) -> None:
    """Axes are counted from the front; negative ones are the importer's to resolve."""
    require(0 <= axis < rank, f"axis {axis} is outside of rank {rank}")


def check_axes(axes: tuple[int, ...], rank: int) -> None:
    """Distinct, each within the rank."""
    for axis in axes:
        check_axis(axis, rank)
    require(len(set(axes)) == len(axes), "an axis is named twice")
