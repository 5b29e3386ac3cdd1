"""The table of primitives: what each op of the Graph IR takes and gives.

Holds: one `OpSpec` a primitive (group, operand count, attributes, shape rule), by families of files, and `RULES`, which
the builder and the verifier ask. The numbers that a primitive computes are fixed in `reference`.
Takes operand types and attributes → gives result types, or a ModelError that says what does not fit.
Must not touch data, model files, kernels or schedules.
"""

from cuvil_core.ops.spec import AttributeKind, Group, OpSpec
from cuvil_core.ops.table import OPS, RULES, is_elementwise, new_builder, spec_of

__all__ = ["OPS", "RULES", "AttributeKind", "Group", "OpSpec", "is_elementwise", "new_builder", "spec_of"]
