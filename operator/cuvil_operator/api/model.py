"""One CuvilModel as the API server stores it: identity, spec, status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cuvil_operator.api.codec import SpecError
from cuvil_operator.api.spec import CuvilModelSpec
from cuvil_operator.api.status import CuvilModelStatus
from cuvil_operator.api.values import parse_time


@dataclass(frozen=True, slots=True)
class CuvilModel:
    """A CuvilModel; `spec` is what a user or Git owns and is never written."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: CuvilModelSpec
    status: CuvilModelStatus = field(default_factory=CuvilModelStatus)
    annotations: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""
    deleted_at: datetime | None = None

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "CuvilModel":
        """Read a whole object; raises SpecError that names the path."""
        meta = body.get("metadata") or {}
        absent = [key for key in ("name", "namespace", "uid") if not meta.get(key)]
        if absent:
            raise SpecError(f"metadata.{absent[0]}: is missing; this is no object from the API server")
        deleted = meta.get("deletionTimestamp")
        return cls(
            name=meta["name"],
            namespace=meta["namespace"],
            uid=meta["uid"],
            generation=int(meta.get("generation") or 0),
            spec=CuvilModelSpec.from_dict(body.get("spec") or {}),
            status=CuvilModelStatus.from_dict(body.get("status") or {}),
            annotations=dict(meta.get("annotations") or {}),
            resource_version=str(meta.get("resourceVersion") or ""),
            deleted_at=parse_time(deleted) if deleted else None,
        )
