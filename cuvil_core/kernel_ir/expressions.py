"""Scalar expressions of a kernel: what is computed at one point of its axes.

Expressions form a DAG: an object used twice is computed once. Shared objects, not equal ones, say what is shared.
Bool values are stored as one byte, 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from cuvil_core.ir import DType
from cuvil_core.kernel_ir.index import Access, Index, Within

UNARY_FLOAT = frozenset(
    ("exp", "log", "sqrt", "reciprocal", "tanh", "sigmoid", "erf", "floor", "ceil", "round", "sin", "cos")
) | frozenset(("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"))
"""Unary operations whose operand and result are floating. `round` takes ties to even."""
UNARY_NUMBER = frozenset(("neg", "abs", "sign"))
"""Unary operations on integers and floats alike. `sign` of NaN is NaN."""
UNARY_TEST = frozenset(("isnan", "isinf"))
"""Unary tests of a float, giving bool."""
UNARY = UNARY_FLOAT | UNARY_NUMBER | UNARY_TEST | {"not"}

BINARY_NUMBER = frozenset(("add", "sub", "mul", "div", "pow", "max", "min", "mod", "fmod"))
"""max and min give NaN when either side is NaN; integer div truncates and gives 0 for a zero divisor; mod has the
sign of the divisor, fmod that of the dividend (both 0 for a zero integer divisor); integers wrap."""
BINARY_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""Ordered comparisons, giving bool; all but `ne` are false for NaN."""
BINARY_LOGIC = frozenset(("and", "or", "xor"))
"""On bools logical, on integers bitwise."""
BINARY_SHIFT = frozenset(("shift_left", "shift_right"))
"""On unsigned integers; by their width or more they give 0."""
BINARY = BINARY_NUMBER | BINARY_COMPARE | BINARY_LOGIC | BINARY_SHIFT


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """An element of a buffer, or `otherwise` where one of the conditions does not hold (then nothing is read)."""

    access: Access
    dtype: DType
    within: tuple[Within, ...] = ()
    otherwise: float | int | bool = 0
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "axes", self.access.index.axes.union(*(condition.index.axes for condition in self.within))
        )

    @property
    def operands(self) -> tuple[Expr, ...]:
        """Expressions inside the index, of looked-up terms."""
        return _computed(self.access.index, *(condition.index for condition in self.within))


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number known when the kernel is compiled; infinities and NaN included."""

    value: float | int | bool
    dtype: DType

    @property
    def operands(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    @property
    def axes(self) -> frozenset[str]:
        """None."""
        return frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class AxisIndex:
    """The value of an index as an integer: positions for iota, masks and ranges."""

    index: Index
    dtype: DType = DType.INT64
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.index.axes)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """Expressions inside the index, of looked-up terms."""
        return _computed(self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Accumulator:
    """The finished value of a reduction; legal in a Fold's or Contraction's stores only."""

    dtype: DType
    position: int = 0
    """Which reducer of a Fold."""

    @property
    def operands(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    @property
    def axes(self) -> frozenset[str]:
        """None beyond those of the statement."""
        return frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """`name(operand)`, one of UNARY."""

    name: str
    operand: Expr
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.operand.axes)

    @property
    def dtype(self) -> DType:
        """Bool for tests and `not` of a bool, else the operand's."""
        return DType.BOOL if self.name in UNARY_TEST else self.operand.dtype

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """`name(left, right)`, one of BINARY; both operands have one dtype."""

    name: str
    left: Expr
    right: Expr
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.left.axes | self.right.axes)

    @property
    def dtype(self) -> DType:
        """Bool for comparisons, else the operands'."""
        return DType.BOOL if self.name in BINARY_COMPARE else self.left.dtype

    @property
    def operands(self) -> tuple[Expr, ...]:
        """Both sides."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Fma:
    """`left · right + addend`, rounded once; floats only."""

    left: Expr
    right: Expr
    addend: Expr
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.left.axes | self.right.axes | self.addend.axes)

    @property
    def dtype(self) -> DType:
        """The operands'."""
        return self.addend.dtype

    @property
    def operands(self) -> tuple[Expr, ...]:
        """All three."""
        return (self.left, self.right, self.addend)


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """`then` where the condition holds, else `other`; both are computed, so only a Load's `within` protects a read."""

    condition: Expr
    then: Expr
    other: Expr
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.condition.axes | self.then.axes | self.other.axes)

    @property
    def dtype(self) -> DType:
        """That of both choices."""
        return self.then.dtype

    @property
    def operands(self) -> tuple[Expr, ...]:
        """Condition and both choices."""
        return (self.condition, self.then, self.other)


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """The operand in another dtype.

    Float to integer truncates and saturates at the integer's bounds, NaN gives 0 (NumPy leaves these cases open);
    integer to narrower integer wraps; to bool is `!= 0`; float32 to bfloat16 and float16 rounds to nearest even.
    """

    operand: Expr
    dtype: DType
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.operand.axes)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast:
    """The operand's bits as another dtype of the same width, neither of them bool."""

    operand: Expr
    dtype: DType
    axes: frozenset[str] = field(init=False, repr=False)
    """Axes that the value depends on; kept, since a walk per question would meet a shared operand once a path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.operand.axes)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.operand,)


Expr: TypeAlias = Load | Literal | AxisIndex | Accumulator | Unary | Binary | Fma | Select | Cast | Bitcast


def _computed(*indices: Index) -> tuple[Expr, ...]:
    return tuple(value for index in indices for value in index.computed)
