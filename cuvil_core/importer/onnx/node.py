"""One node of the model with typed attributes, already checked against ONNX's own schema."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import onnx
from onnx import AttributeProto

from cuvil_core.errors import ModelError, UnsupportedOpError

HOW_TO = "docs/how-to/add-an-op.md"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node:
    """A node; missing optional inputs are empty names."""

    op_type: str
    domain: str
    opset: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeProto]
    overload: str = ""
    within: str = ""
    """The node whose body this one is part of, as it calls itself; empty in the model's own graph."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What a function that the node calls is known by."""
        return self.domain, self.op_type, self.overload

    @property
    def place(self) -> str:
        """The node for error sentences."""
        return f"{self.within}, within it {self.name!r}" if self.within else f"Node {self.name!r}"

    def __str__(self) -> str:
        return f"{self.place} ({self.op_type}, opset {self.opset})"

    def has(self, key: str) -> bool:
        """True where the attribute is given."""
        return key in self.attributes

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer attribute."""
        found = self.attributes.get(key)
        return int(found.i) if found is not None else self._or(key, default)

    def flag(self, key: str, default: bool) -> bool:
        """An integer attribute as a truth value."""
        return bool(self.integer(key, int(default)))

    def number(self, key: str, default: float | None = None) -> float:
        """A float attribute."""
        found = self.attributes.get(key)
        return float(found.f) if found is not None else self._or(key, default)

    def text(self, key: str, default: str | None = None) -> str:
        """A string attribute."""
        found = self.attributes.get(key)
        return found.s.decode("utf-8", "replace") if found is not None else self._or(key, default)

    def integers(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute of integers."""
        found = self.attributes.get(key)
        return tuple(map(int, found.ints)) if found is not None else self._or(key, default)

    def numbers(self, key: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """An attribute of floats."""
        found = self.attributes.get(key)
        return tuple(map(float, found.floats)) if found is not None else self._or(key, default)

    def _or(self, key: str, default: T | None) -> T:
        if default is None:
            raise ModelError(f"{self} lacks the attribute {key}; export the model again.")
        return default

    def broken(self, fault: str) -> ModelError:
        """The error for a node that breaks its op's rules."""
        return ModelError(f"{self}: {fault}; correct or export the model again.")

    def unsupported(self, what: str) -> UnsupportedOpError:
        """The error for a sound node that needs more than its translation has."""
        return UnsupportedOpError(f"{self} uses {what}, which Cuvil does not compile; see {HOW_TO}.")


def read_node(
    proto: onnx.NodeProto,
    opsets: Mapping[str, int],
    number: int,
    functions: Container[tuple[str, str, str]] = (),
    within: str = "",
) -> Node:
    """The node after the checks of its schema: known op and attributes, their kinds, numbers of inputs and outputs.

    A call of one of the `functions` has no schema. `within` is the node whose body this one is part of.
    """
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    name = proto.name or f"#{number}"
    opset = opsets.get(domain)
    if opset is None:
        raise UnsupportedOpError(
            f"{f'{within}, within it' if within else 'Node'} {name!r} uses op {proto.op_type} of domain {domain!r}, "
            f"which it does not import; see {HOW_TO}."
        )
    attributes = {attribute.name: attribute for attribute in proto.attribute}
    node = Node(proto.op_type, domain, opset, name, tuple(proto.input), tuple(proto.output), attributes)
    node = replace(node, overload=proto.overload, within=within)
    if len(attributes) != len(proto.attribute):
        raise node.broken("an attribute is given twice")
    if any(attribute.ref_attr_name for attribute in proto.attribute):
        raise node.broken("it refers to an attribute of a function that it is not part of")
    if node.key not in functions:
        _check_schema(node)
    return node


def unknown_op(node: Node) -> UnsupportedOpError:
    """The error for an op that the table lacks."""
    domain = node.domain or "ai.onnx"
    return UnsupportedOpError(
        f"{node.place} uses op {node.op_type} of domain {domain!r}, opset {node.opset}, which Cuvil does not "
        f"compile; see {HOW_TO}."
    )


def _check_schema(node: Node) -> None:
    try:
        schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    except onnx.defs.SchemaError:
        raise unknown_op(node) from None
    if schema.deprecated:
        raise unknown_op(node)
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        raise node.broken(f"it has {len(node.inputs)} inputs")
    if not schema.min_output <= len(node.outputs) <= schema.max_output:
        raise node.broken(f"it has {len(node.outputs)} outputs")
    for key, attribute in node.attributes.items():
        known = schema.attributes.get(key)
        if known is None:
            raise node.broken(f"it has an unknown attribute {key!r}")
        if int(known.type.value) != int(attribute.type):
            raise node.broken(f"the attribute {key} has a wrong kind")
    for key, known in schema.attributes.items():
        if known.required and key not in node.attributes:
            raise node.broken(f"it lacks the attribute {key}")
