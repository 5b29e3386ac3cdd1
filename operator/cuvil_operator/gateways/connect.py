"""Finds the API server: the ServiceAccount of a pod, else a kubeconfig."""

import os

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from cuvil_operator.gateways.failures import KubernetesDenied


async def connect(context: str = "") -> ApiClient:
    """Give a client; KubernetesDenied with the cure where neither way in exists.

    In a pod the ServiceAccount's token is used and read again each minute; elsewhere $KUBECONFIG or ~/.kube/config.
    """
    found = Configuration()
    try:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=found)
        else:
            await config.load_kube_config(client_configuration=found, context=context or None)
    except (config.ConfigException, OSError) as fault:
        raise KubernetesDenied(
            f"no way to a cluster: {fault}; run in a pod with a ServiceAccount, or set KUBECONFIG to a readable file"
        ) from fault
    found.retries = None
    """Retries are the queue's: a hidden one would outlive the fence."""
    return ApiClient(found)
