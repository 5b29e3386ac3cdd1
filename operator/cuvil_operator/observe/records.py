"""Revision ConfigMaps → RevisionRecords: pure."""

import logging
from collections.abc import Iterable

from cuvil_operator import conventions
from cuvil_operator.facts import RevisionRecord
from cuvil_operator.gateways.protocols import Document

log = logging.getLogger(__name__)


def read_records(
    config_maps: Iterable[Document], uid: str
) -> tuple[tuple[RevisionRecord, ...], tuple[RevisionRecord, ...]]:
    """Give (own, siblings'): own are those whose owner has this uid; one that cannot be read counts as absent."""
    own: list[RevisionRecord] = []
    siblings: list[RevisionRecord] = []
    for document in config_maps:
        record = _read(document)
        if record is not None:
            owners = {ref["uid"] for ref in document["metadata"].get("ownerReferences") or ()}
            (own if uid in owners else siblings).append(record)
    return tuple(own), tuple(siblings)


def _read(document: Document) -> RevisionRecord | None:
    try:
        return RevisionRecord.from_json((document.get("data") or {})[conventions.RECORD_KEY])
    except (KeyError, ValueError) as fault:
        meta = document["metadata"]
        log.warning("ConfigMap %s/%s holds no revision: %s", meta["namespace"], meta["name"], fault)
        return None
