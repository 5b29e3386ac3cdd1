"""ONNX → Graph.

Holds: the reader with its checks, the signature, the translation table by families, the driver that walks the nodes.
Takes a path or bytes and `InputSpec`s → gives a Graph that the verifier accepts.
Raises ModelError for a broken file, UnsupportedOpError for a sound one that needs more than Cuvil has, SizeError past a
bound, InputError where the caller's `InputSpec`s do not fit; nothing else, whatever the bytes.
"""

from cuvil_core.importer.onnx.driver import load
from cuvil_core.importer.onnx.metadata import describe

__all__ = ["describe", "load"]
