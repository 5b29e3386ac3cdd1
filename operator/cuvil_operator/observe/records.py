"""Revision ConfigMaps → RevisionRecords: pure."""

import logging
from collections.abc import Iterable

from cuvil_operator import conventions
from cuvil_operator.facts import RevisionRecord
from cuvil_operator.gateways.protocols import Document

log = logging.getLogger(__name__)


def own_records(config_maps: Iterable[Document], uid: str) -> tuple[RevisionRecord, ...]:
    """Give the records of the revisions that the CuvilModel of this uid owns; one that cannot be read is absent."""
    return _records(one for one in config_maps if uid in _owners(one))


def sibling_records(config_maps: Iterable[Document], uid: str) -> tuple[RevisionRecord, ...]:
    """Give the records of the revisions that others own."""
    return _records(one for one in config_maps if uid not in _owners(one))


def _records(config_maps: Iterable[Document]) -> tuple[RevisionRecord, ...]:
    return tuple(record for one in config_maps if (record := _read(one)) is not None)


def _owners(document: Document) -> set[str]:
    return {ref["uid"] for ref in document["metadata"].get("ownerReferences") or ()}


def _read(document: Document) -> RevisionRecord | None:
    try:
        return RevisionRecord.from_json((document.get("data") or {})[conventions.RECORD_KEY])
    except (KeyError, ValueError) as fault:
        meta = document["metadata"]
        log.warning("ConfigMap %s/%s holds no revision: %s", meta["namespace"], meta["name"], fault)
        return None
