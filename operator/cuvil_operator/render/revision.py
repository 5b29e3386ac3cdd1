"""What belongs to a revision and never changes: its immutable ConfigMap and its Service."""

from cuvil_core.contract import ServingSettings
from cuvil_operator import conventions as names
from cuvil_operator.errors import GiveUpError
from cuvil_operator.facts import RevisionRecord
from cuvil_operator.render.identity import SERVING, Document, Owner, document, labels, serving_selector

CONFIG_LIMIT = 256 << 10
"""Bytes of a revision's ConfigMap; a ConfigMap holds 1 MiB at most, and big things belong into the store."""


def config_map(owner: Owner, record: RevisionRecord, *, insecure_registry: bool = False) -> Document:
    """Give the immutable ConfigMap; raises GiveUpError where it would exceed CONFIG_LIMIT.

    Two ConfigMaps of one name with another RECORD_KEY are a fault; SERVING_KEY also depends on the operator's settings
    at the time of writing and stays as it was written.
    """
    settings = ServingSettings(
        model=record.model,
        revision=record.revision,
        artifact=record.artifact,
        sha256=record.artifact_sha256,
        threshold_seconds=record.threshold_seconds,
        reject_non_finite=record.serving.reject_non_finite,
        max_artifact_bytes=max(record.artifact_size, 1),
        insecure_registry=insecure_registry,
    )
    data = {names.RECORD_KEY: record.to_json(), names.SERVING_KEY: settings.to_json()}
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > CONFIG_LIMIT:
        raise GiveUpError(
            f"the record of revision {record.revision} takes {size} bytes, more than {CONFIG_LIMIT}: "
            "give the model fewer inputs and outputs, or shorter names"
        )
    extra = {
        names.LABEL_REVISION: record.revision,
        names.LABEL_STAGE: names.STAGE_REVISION,
        names.LABEL_KEY: record.compile_key[: names.KEY_DIGITS],
    }
    name = names.revision_name(owner.name, record.revision)
    return document(("v1", "ConfigMap"), owner, name, labels(owner, "revision", extra), immutable=True, data=data)


def revision_service(owner: Owner, revision: str) -> Document:
    """Give the Service of one revision's pods: what an HTTPRoute's backend names."""
    labelled = labels(owner, SERVING, {names.LABEL_REVISION: revision})
    spec = service_spec(serving_selector(owner.name, revision))
    return document(("v1", "Service"), owner, names.revision_name(owner.name, revision), labelled, spec=spec)


def service_spec(selector: dict[str, str]) -> Document:
    """Give the spec of a Service in front of serving pods."""
    port = {"name": "http", "port": names.SERVICE_PORT, "targetPort": "http", "protocol": "TCP"}
    return {"type": "ClusterIP", "selector": selector, "ports": [port]}
