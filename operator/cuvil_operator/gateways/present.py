"""The documents that one turn has read: what observe saw is what act compares with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuvil_operator.gateways.protocols import Document, Resource


@dataclass(frozen=True, slots=True)
class Present:
    """All documents of some kinds that belong to one CuvilModel's turn."""

    documents: Mapping[Resource, Mapping[str, Document]] = field(default_factory=dict)
    """Kind → name → document; a kind that is a key here was read, so a name that is absent is not there."""

    @classmethod
    def of(cls, read: Mapping[Resource, tuple[Document, ...]]) -> "Present":
        """Build it from the lists."""
        return cls({kind: {one["metadata"]["name"]: one for one in found} for kind, found in read.items()})

    def get(self, resource: Resource, name: str) -> Document | None:
        """Give the document, or None where it is absent or its kind was not read."""
        return self.documents.get(resource, {}).get(name)

    def was_read(self, resource: Resource) -> bool:
        """True where absent means: not there under Cuvil's labels."""
        return resource in self.documents
