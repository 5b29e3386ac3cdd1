"""One file that holds a compiled model: manifest, a library for each instruction set, weights.

Holds: the file's layout, its writer, its reader and the digests that bind every byte.
Takes a Manifest, libraries and weights → gives bytes; takes a path or bytes → gives an Artifact whose parts are checked
before they are handed out. Must not load code, import NumPy or know what a kernel is.
"""

from cuvil_core.artifact.layout import Head
from cuvil_core.artifact.reader import Artifact, open_artifact, open_plain
from cuvil_core.artifact.writer import check_target, pack, publish

__all__ = ["Artifact", "Head", "check_target", "open_artifact", "open_plain", "pack", "publish"]
