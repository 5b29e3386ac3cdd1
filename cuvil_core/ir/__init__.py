"""The Graph IR: what a model computes, as SSA over tensors with symbolic shapes.

Holds: dims, dtypes, tensor types, values, ops, blocks, graphs, guards, provenance, payloads; the builder, the text
printer and its inverse, the verifier.
Takes nothing but the standard library and `cuvil_core.errors`; what an op means (its shape rule) comes in as `Rules`.
Must not know NumPy, model files, back ends, nor the name of any single op except `constant`, `region` and `bind`.
"""

from cuvil_core.ir.builder import GraphBuilder
from cuvil_core.ir.dims import Dim, DimLike, Extremum, FloorDiv, Symbol, dim_max, dim_min, is_from_data, product
from cuvil_core.ir.dtypes import DType
from cuvil_core.ir.elements import Element, Elements
from cuvil_core.ir.equalities import Equalities, spelling
from cuvil_core.ir.graph import (
    UNKNOWN,
    Attribute,
    Block,
    Graph,
    Guard,
    Op,
    Provenance,
    Relation,
    SymbolRange,
    Value,
    freeze,
)
from cuvil_core.ir.parser import parse_dim, parse_graph
from cuvil_core.ir.payload import Payload
from cuvil_core.ir.printer import payload_table, print_graph, print_op
from cuvil_core.ir.types import Rules, TensorType
from cuvil_core.ir.verifier import VerifyError, verify

__all__ = [
    "UNKNOWN",
    "Attribute",
    "Block",
    "DType",
    "Dim",
    "DimLike",
    "Element",
    "Elements",
    "Equalities",
    "Extremum",
    "FloorDiv",
    "Graph",
    "GraphBuilder",
    "Guard",
    "Op",
    "Payload",
    "Provenance",
    "Relation",
    "Rules",
    "Symbol",
    "SymbolRange",
    "TensorType",
    "Value",
    "VerifyError",
    "dim_max",
    "dim_min",
    "freeze",
    "is_from_data",
    "parse_dim",
    "parse_graph",
    "payload_table",
    "print_graph",
    "print_op",
    "product",
    "spelling",
    "verify",
]
