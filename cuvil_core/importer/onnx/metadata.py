"""What a model file says of itself besides what it computes."""

from pathlib import Path

from cuvil_core.errors import SizeError
from cuvil_core.importer.onnx.reading import read

MAX_METADATA_BYTES = 4 << 20
"""A character table of a large alphabet has some tens of kilobytes."""


def describe(source: Path | bytes) -> tuple[str, dict[str, str]]:
    """The graph's own name, and the metadata entries as they stand in the file. Raises what `load` raises."""
    model, _ = read(source)
    entries = {entry.key: entry.value for entry in model.metadata_props}
    size = sum(len(key) + len(value) for key, value in entries.items())
    if size > MAX_METADATA_BYTES:
        raise SizeError(f"The model's metadata has {size} bytes, more than {MAX_METADATA_BYTES}; take some out.")
    return model.graph.name, entries
