"""Which CuvilModels an object concerns: pure."""

from cuvil_operator import conventions
from cuvil_operator.facts import ModelKey
from cuvil_operator.gateways.protocols import ObjectStamp, Resource
from cuvil_operator.gateways.resources import CUVIL_MODELS


def keys_of(resource: Resource, stamp: ObjectStamp) -> frozenset[ModelKey]:
    """Give the model itself, or for a child its owners and the model that its label names.

    A compile Job has several owners and no label; a pod has a label and a ReplicaSet or Job as owner.
    """
    if resource == CUVIL_MODELS:
        return frozenset({ModelKey(stamp.namespace, stamp.name)})
    names = {name for kind, name in stamp.owners if kind == conventions.KIND}
    labelled = stamp.labels.get(conventions.LABEL_MODEL, "")
    return frozenset(ModelKey(stamp.namespace, name) for name in names | ({labelled} if labelled else set()))
