"""Reads the world for one CuvilModel: about eight requests at once, never more than a fixed number.

Nothing is cached: what a turn decides on was read in that turn, so a watch that lags or lies can delay a turn but not
mislead it.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelSpec, CuvilModelStatus, SpecError
from cuvil_operator.errors import GiveUpError
from cuvil_operator.facts import GpuNodes, JobSeen, ModelKey, Observed, Platform, RevisionRecord, RouteSeen, Samples
from cuvil_operator.gateways.failures import KubernetesDenied
from cuvil_operator.gateways.present import Present
from cuvil_operator.gateways.protocols import (
    Clock,
    Document,
    KubernetesGateway,
    PrometheusGateway,
)
from cuvil_operator.gateways.resources import (
    CONFIG_MAPS,
    CUVIL_MODELS,
    DEPLOYMENTS,
    HTTP_ROUTES,
    JOBS,
    NODES,
    PODS,
    SERVICES,
)
from cuvil_operator.observe.jobs import read_job
from cuvil_operator.observe.nodes import read_nodes
from cuvil_operator.observe.records import own_records, sibling_records
from cuvil_operator.observe.routes import read_http_route, read_service
from cuvil_operator.observe.samples import is_due, read_samples
from cuvil_operator.observe.workloads import read_workload, serving_pods


@dataclass(frozen=True, slots=True)
class Look:
    """An observation and the documents it was read from: act compares with them, status is written against one."""

    observed: Observed
    document: Document
    """The CuvilModel."""
    present: Present


@dataclass(frozen=True, slots=True)
class _Read:
    """The raw lists of one turn."""

    jobs: tuple[Document, ...]
    config_maps: tuple[Document, ...]
    deployments: tuple[Document, ...]
    services: tuple[Document, ...]
    routes: tuple[Document, ...]
    model_pods: tuple[Document, ...]
    compile_pods: tuple[Document, ...]


class Observer:
    """Gateways → Look."""

    def __init__(
        self, kubernetes: KubernetesGateway, prometheus: PrometheusGateway, clock: Clock, platform: Platform
    ) -> None:
        self._kubernetes = kubernetes
        self._prometheus = prometheus
        self._clock = clock
        self._platform = platform

    async def look(self, key: ModelKey) -> Look | None:
        """Give what is, or None where the model is gone; raises a KubernetesFailure where it cannot be read."""
        document = await self._kubernetes.get(CUVIL_MODELS, key.namespace, key.name)
        if document is None:
            return None
        now = self._clock.now()
        spec, spec_error = _spec(document)
        status = _status(document)
        read, canary, nodes = await asyncio.gather(
            self._read(key),
            self._samples(key, status, spec, now),
            self._nodes(spec),
        )
        pods = serving_pods(read.model_pods)
        own = own_records(read.config_maps, document["metadata"]["uid"])
        observed = Observed(
            now=now,
            name=key.name,
            namespace=key.namespace,
            uid=document["metadata"]["uid"],
            generation=int(document["metadata"].get("generation") or 0),
            spec=spec,
            status=status,
            platform=self._platform,
            deleting="deletionTimestamp" in document["metadata"],
            spec_error=spec_error,
            command=str((document["metadata"].get("annotations") or {}).get(names.ANNOTATION_COMMAND, "")),
            jobs=_jobs(read),
            records=own,
            siblings=await self._siblings(key, document, status, own),
            workloads=tuple(read_workload(one, pods) for one in read.deployments),
            route=_route(key, spec, read, pods),
            canary_samples=canary,
            nodes=nodes,
        )
        return Look(observed, document, _present(read))

    async def _read(self, key: ModelKey) -> _Read:
        own = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_MODEL: key.name}
        shared = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_STAGE: names.Stage.COMPILE.value}
        asked = (
            (JOBS, own),
            (JOBS, shared),
            (CONFIG_MAPS, own),
            (DEPLOYMENTS, own),
            (SERVICES, own),
            (HTTP_ROUTES, own),
            (PODS, own),
            (PODS, shared),
        )
        jobs, compiles, maps, deployments, services, routes, pods, compile_pods = await asyncio.gather(
            *(self._kubernetes.list(resource, key.namespace, labels) for resource, labels in asked)
        )
        return _Read((*jobs, *compiles), maps, deployments, services, routes, pods, compile_pods)

    async def _siblings(
        self, key: ModelKey, document: Document, status: CuvilModelStatus, own: tuple[RevisionRecord, ...]
    ) -> tuple[RevisionRecord, ...]:
        """Read other models' revisions only while this model's own is not proved: nothing else rests on them.

        Else each turn of each model would read the namespace's whole history.
        """
        proved = status.revision in {one.revision for one in own}
        if proved and status.observed_generation == document["metadata"].get("generation"):
            return ()
        revisions = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_STAGE: names.STAGE_REVISION}
        found = await self._kubernetes.list(CONFIG_MAPS, key.namespace, revisions)
        return sibling_records(found, document["metadata"]["uid"])

    async def _samples(
        self, key: ModelKey, status: CuvilModelStatus, spec: CuvilModelSpec | None, now: datetime
    ) -> Samples | None:
        if status.canary is None or spec is None or not is_due(status, spec, now):
            return None
        return await read_samples(self._prometheus, self._clock, key, status.canary.revision, spec)

    async def _nodes(self, spec: CuvilModelSpec | None) -> GpuNodes:
        resource = names.gpu_resource(spec.target) if spec else None
        if resource is None:
            return GpuNodes()
        try:
            return read_nodes(await self._kubernetes.list(NODES, None), resource)
        except KubernetesDenied:
            # An installation for some namespaces may have no right to see nodes: then the scheduler's word must do,
            # and a Job that finds no node waits with its sentence.
            return GpuNodes({resource: 1})


def _spec(document: Document) -> tuple[CuvilModelSpec | None, str]:
    try:
        return CuvilModelSpec.from_dict(document.get("spec") or {}), ""
    except SpecError as fault:
        return None, str(fault)


def _status(document: Document) -> CuvilModelStatus:
    try:
        return CuvilModelStatus.from_dict(document.get("status") or {})
    except SpecError as fault:
        # Going on with an empty memory would try a quarantined revision again.
        raise GiveUpError(
            f"the status cannot be read: {fault}; if somebody edited it, undo that, or delete the status to start anew"
        ) from fault


def _jobs(read: _Read) -> tuple[JobSeen, ...]:
    pods = (*read.model_pods, *read.compile_pods)
    return tuple(seen for job in read.jobs if (seen := read_job(job, pods)) is not None)


def _route(key: ModelKey, spec: CuvilModelSpec | None, read: _Read, pods: list[Document]) -> RouteSeen:
    if spec is not None and spec.rollout.traffic is not None:
        return read_http_route(key.name, _named(read.routes, key.name))
    return read_service(_named(read.services, key.name), pods)


def _named(documents: tuple[Document, ...], name: str) -> Document | None:
    return next((one for one in documents if one["metadata"]["name"] == name), None)


def _present(read: _Read) -> Present:
    return Present.of(
        {
            JOBS: read.jobs,
            CONFIG_MAPS: read.config_maps,
            DEPLOYMENTS: read.deployments,
            SERVICES: read.services,
            HTTP_ROUTES: read.routes,
        }
    )
