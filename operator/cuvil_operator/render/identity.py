"""Who owns a document and how it is labelled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuvil_operator import conventions as names

Document = dict[str, Any]
"""A Kubernetes object as its JSON."""

COMPONENT = "app.kubernetes.io/component"
SERVING = "serving"
"""Component of serving pods; Job pods carry another one, so that no Service ever selects them."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The CuvilModel that a document belongs to."""

    name: str
    namespace: str
    uid: str


def owner_reference(owner: Owner, *, controller: bool) -> Document:
    """Give the reference by which the cluster collects the document after its owner.

    controller: False where several CuvilModels own one document; Kubernetes allows one controller.
    """
    reference: Document = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": True,
    }
    return reference | ({"controller": True} if controller else {})


def labels(owner: Owner | None, component: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the labels of a document; owner is None where several share it."""
    own = {names.LABEL_NAME: names.APP_NAME, names.LABEL_MANAGED_BY: names.MANAGED_BY, COMPONENT: component}
    if owner is not None:
        own |= {names.LABEL_INSTANCE: owner.name, names.LABEL_MODEL: owner.name}
    return own | dict(extra or {})


def document(
    kind: tuple[str, str],
    owner: Owner,
    name: str,
    labelled: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    controller: bool = True,
    **body: Any,
) -> Document:
    """Give a document of `kind` (apiVersion, kind) in the owner's namespace."""
    metadata: Document = {
        "name": name,
        "namespace": owner.namespace,
        "labels": dict(labelled),
        "ownerReferences": [owner_reference(owner, controller=controller)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **body}


def serving_selector(model: str, revision: str | None = None) -> dict[str, str]:
    """Give the labels that select a model's serving pods, of one revision or of all."""
    selector = {names.LABEL_MODEL: model, COMPONENT: SERVING}
    return selector | ({names.LABEL_REVISION: revision} if revision else {})
