"""The real LeaseStore: create and compare-and-swap of one Lease."""

from cuvil_operator.gateways.protocols import Document
from cuvil_operator.gateways.resources import LEASES, path_of
from cuvil_operator.gateways.transport import ApiTransport, NotFound

READ_SECONDS = 5.0


class ApiLeases:
    """LeaseStore over the API server."""

    def __init__(self, transport: ApiTransport) -> None:
        self._transport = transport

    async def read(self, namespace: str, name: str) -> Document | None:
        """Give the Lease, or None."""
        try:
            return await self._transport.request("GET", path_of(LEASES, namespace, name), timeout=READ_SECONDS)
        except NotFound:
            return None

    async def write(self, lease: Document, timeout: float) -> Document:
        """Create it, or replace the version it names."""
        meta = lease["metadata"]
        if not meta.get("resourceVersion"):
            path = path_of(LEASES, meta["namespace"])
            return await self._transport.request("POST", path, body=lease, timeout=timeout)
        path = path_of(LEASES, meta["namespace"], meta["name"])
        return await self._transport.request("PUT", path, body=lease, timeout=timeout)
