"""Finds the API server: the ServiceAccount of a pod, else a kubeconfig."""

import os
from dataclasses import dataclass

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from cuvil_operator.gateways.failures import KubernetesDenied


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server, for a library that opens its own connections."""

    server: str
    ca_path: str | None
    certificate_path: str | None
    key_path: str | None
    scheme: str | None
    token: str | None
    insecure: bool


async def connect() -> ApiClient:
    """Give a client; KubernetesDenied with the cure where there is no way in.

    In a pod the ServiceAccount's token is used and read again each minute; elsewhere $KUBECONFIG or ~/.kube/config.
    """
    found = await _configuration()
    # Retries are the queue's: a hidden one would outlive the fence.
    found.retries = None
    return ApiClient(found)


async def access() -> Access:
    """Give the same way in, with a token as of now."""
    found = await _configuration()
    bearer = await found.get_api_key_with_prefix("BearerToken")
    scheme, _, token = (bearer or "").rpartition(" ")
    return Access(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        certificate_path=found.cert_file,
        key_path=found.key_file,
        scheme=scheme or None,
        token=token or None,
        insecure=not found.verify_ssl,
    )


async def _configuration() -> Configuration:
    found = Configuration()
    try:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=found)
        else:
            # Given by name, since the library reads the variable once, when it is imported.
            files = os.environ.get("KUBECONFIG") or config.KUBE_CONFIG_DEFAULT_LOCATION
            await config.load_kube_config(config_file=files, client_configuration=found)
    except (config.ConfigException, OSError) as fault:
        raise KubernetesDenied(
            f"no way to a cluster: {fault}; run in a pod with a ServiceAccount, or set KUBECONFIG to a readable file"
        ) from fault
    return found
