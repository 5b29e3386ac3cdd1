"""Performs the acts of one decision, in order, and stops at the first that fails.

The order is part of safety (pods before weights, stable's capacity before the canary's end), so an act after a failed
one is not tried. Monitoring and Events are the exceptions: they only tell of the rollout, and a rollback must not wait
for them.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cuvil_operator import conventions as names
from cuvil_operator import facts, render
from cuvil_operator.act.ensuring import Ensuring, refuse_foreign
from cuvil_operator.api import CuvilModelSpec
from cuvil_operator.errors import CorruptError, FencedError, GiveUpError, OperatorError, RetryError
from cuvil_operator.facts import Action, Decision, Observed, Outcome, OutcomeKind
from cuvil_operator.gateways.failures import KubernetesConflict
from cuvil_operator.gateways.present import Present
from cuvil_operator.gateways.protocols import Clock, Document, EventNote, KubernetesGateway, Resource
from cuvil_operator.gateways.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HTTP_ROUTES,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the acts of one turn rest on."""

    seen: Observed
    document: Document
    """The CuvilModel, for Events."""
    present: Present

    @property
    def owner(self) -> render.Owner:
        """Whose the documents are."""
        return render.Owner(self.seen.name, self.seen.namespace, self.seen.uid)

    @property
    def spec(self) -> CuvilModelSpec:
        """The spec; GiveUpError where it cannot be read."""
        if self.seen.spec is None:
            raise GiveUpError(f"the spec cannot be read: {self.seen.spec_error}")
        return self.seen.spec


class Performer:
    """Decision → Outcomes."""

    def __init__(self, kubernetes: KubernetesGateway, clock: Clock) -> None:
        self._kubernetes = kubernetes
        self._ensuring = Ensuring(kubernetes, clock)
        self._handlers: dict[type, Callable[[Turn, Any], Awaitable[bool]]] = {
            facts.RunResolve: self._run_resolve,
            facts.RunCompile: self._run_compile,
            facts.RunValidate: self._run_validate,
            facts.DeleteJob: self._delete_job,
            facts.DisownJob: self._disown_job,
            facts.EnsureRevision: self._ensure_revision,
            facts.DeleteRevision: self._delete_revision,
            facts.EnsureWorkload: self._ensure_workload,
            facts.DeleteWorkload: self._delete_workload,
            facts.EnsureRouting: self._ensure_routing,
            facts.EnsureMonitoring: self._ensure_monitoring,
            facts.EmitEvent: self._emit,
        }

    async def perform(self, turn: Turn, decision: Decision) -> tuple[Outcome, ...]:
        """Give one Outcome for each act, up to and with the first FAILED.

        Raises FencedError (the Lease is lost) and KubernetesConflict (what was observed is no longer so).
        """
        outcomes: list[Outcome] = []
        for action in decision.actions:
            outcomes.append(await self._act(turn, action))
            if outcomes[-1].kind is OutcomeKind.FAILED:
                break
        return tuple(outcomes)

    async def _act(self, turn: Turn, action: Action) -> Outcome:
        try:
            changed = await self._handlers[type(action)](turn, action)
        except (FencedError, KubernetesConflict):
            raise
        except OperatorError as fault:
            log.warning("%s/%s: %s: %s", turn.seen.namespace, turn.seen.name, type(action).__name__, fault)
            return Outcome(action, OutcomeKind.FAILED, str(fault))
        return Outcome(action, OutcomeKind.WRITTEN if changed else OutcomeKind.UNCHANGED)

    # Jobs

    async def _run_resolve(self, turn: Turn, action: facts.RunResolve) -> bool:
        return await self._run(turn, render.resolve_job(turn.owner, turn.spec, turn.seen.platform, action))

    async def _run_validate(self, turn: Turn, action: facts.RunValidate) -> bool:
        return await self._run(turn, render.validate_job(turn.owner, turn.spec, turn.seen.platform, action))

    async def _run_compile(self, turn: Turn, action: facts.RunCompile) -> bool:
        job = render.compile_job(turn.owner, turn.spec, turn.seen.platform, action)
        live = turn.present.get(JOBS, job["metadata"]["name"])
        if live is None or turn.seen.uid in _owner_uids(live):
            return await self._run(turn, job)
        owners = [*(live["metadata"].get("ownerReferences") or ()), *job["metadata"]["ownerReferences"]]
        await self._set_owners(turn, live, owners)
        return True

    async def _run(self, turn: Turn, job: Document) -> bool:
        """Create a Job that is absent. One that is there is left alone: a Job's template is immutable."""
        live = turn.present.get(JOBS, job["metadata"]["name"])
        if live is None:
            await self._create(turn, job)
            return True
        wanted = job["metadata"]["annotations"][names.ANNOTATION_KEY]
        if (live["metadata"].get("annotations") or {}).get(names.ANNOTATION_KEY) != wanted:
            raise CorruptError(f"Job {job['metadata']['name']} is of another key: delete it, then it is made anew")
        return False

    async def _create(self, turn: Turn, document: Document) -> None:
        """Create; where the name is taken, say so if the holder is a stranger, else look again."""
        try:
            await self._kubernetes.create(document)
        except KubernetesConflict:
            resource = JOBS if document["kind"] == JOBS.kind else CONFIG_MAPS
            live = await self._kubernetes.get(resource, turn.seen.namespace, document["metadata"]["name"])
            if live is not None and (live["metadata"].get("labels") or {}).get(names.LABEL_MANAGED_BY) is None:
                refuse_foreign(live, turn.seen.uid)
            raise

    async def _delete_job(self, turn: Turn, action: facts.DeleteJob) -> bool:
        live = turn.present.get(JOBS, action.name)
        if live is not None and set(_owner_uids(live)) - {turn.seen.uid}:
            raise RetryError(f"Job {action.name} has other owners by now")
        return await self._kubernetes.delete(JOBS, turn.seen.namespace, action.name, action.uid)

    async def _disown_job(self, turn: Turn, action: facts.DisownJob) -> bool:
        live = turn.present.get(JOBS, action.name)
        if live is None or live["metadata"]["uid"] != action.uid:
            return False
        left = [one for one in live["metadata"].get("ownerReferences") or () if one["uid"] != turn.seen.uid]
        await self._set_owners(turn, live, left)
        return True

    async def _set_owners(self, turn: Turn, live: Document, owners: list[Document]) -> None:
        meta = live["metadata"]
        await self._kubernetes.set_owners(JOBS, meta["namespace"], meta["name"], owners, meta["resourceVersion"])

    # Revisions and their pods

    async def _ensure_revision(self, turn: Turn, action: facts.EnsureRevision) -> bool:
        document = render.config_map(turn.owner, action.record, insecure_registry=turn.seen.platform.insecure_registry)
        live = turn.present.get(CONFIG_MAPS, document["metadata"]["name"])
        if live is None:
            await self._create(turn, document)
            return True
        refuse_foreign(live, turn.seen.uid)
        if (live.get("data") or {}).get(names.RECORD_KEY) != document["data"][names.RECORD_KEY]:
            await self._delete_owned(turn, CONFIG_MAPS, document["metadata"]["name"])
            raise CorruptError(f"ConfigMap {document['metadata']['name']} held another record; it is made anew")
        return False

    async def _delete_revision(self, turn: Turn, action: facts.DeleteRevision) -> bool:
        return await self._delete_owned(turn, CONFIG_MAPS, names.revision_name(turn.seen.name, action.revision))

    async def _ensure_workload(self, turn: Turn, action: facts.EnsureWorkload) -> bool:
        secret = turn.seen.platform.registry_secret
        documents = render.workload(
            turn.owner, action.record, action.replicas, action.restarted_at, registry_secret=secret
        )
        return await self._ensure_all(turn, documents)

    async def _delete_workload(self, turn: Turn, action: facts.DeleteWorkload) -> bool:
        name = names.revision_name(turn.seen.name, action.revision)
        # The Deployment goes last: it is what the next turn sees. Killed before that, the next turn deletes on;
        # the other way round a Service would be left that nothing leads to.
        gone = [await self._delete_owned(turn, kind, name) for kind in (POD_DISRUPTION_BUDGETS, SERVICES, DEPLOYMENTS)]
        return any(gone)

    async def _delete_owned(self, turn: Turn, resource: Resource, name: str) -> bool:
        live = turn.present.get(resource, name)
        if live is None and not turn.present.was_read(resource):
            live = await self._kubernetes.get(resource, turn.seen.namespace, name)
        if live is None or turn.seen.uid not in _owner_uids(live) or "deletionTimestamp" in live["metadata"]:
            return False
        self._ensuring.forget(resource, turn.seen.namespace, name)
        return await self._kubernetes.delete(resource, turn.seen.namespace, name, live["metadata"]["uid"])

    # Traffic and what tells of it

    async def _ensure_routing(self, turn: Turn, action: facts.EnsureRouting) -> bool:
        documents = render.traffic_split(turn.spec).documents(turn.owner, action.weights)
        changed = await self._ensure_all(turn, documents)
        if turn.spec.rollout.traffic is None:
            # Only after the Service: until then the old route still leads somewhere.
            changed |= await self._delete_owned(turn, HTTP_ROUTES, turn.seen.name)
        return changed

    async def _ensure_monitoring(self, turn: Turn, action: facts.EnsureMonitoring) -> bool:
        documents = (render.pod_monitor(turn.owner, turn.spec), render.prometheus_rule(turn.owner, turn.spec))
        try:
            return await self._ensure_all(turn, documents)
        except (FencedError, KubernetesConflict):
            raise
        except OperatorError as fault:
            message = f"monitoring could not be set up: {fault}"
            log.warning("%s/%s: %s", turn.seen.namespace, turn.seen.name, message)
            note = EventNote(turn.document, names.EventKind.WARNING, names.Reason.ACT_FAILED.value, message)
            await self._kubernetes.emit(note)
            return False

    async def _emit(self, turn: Turn, action: facts.EmitEvent) -> bool:
        note = EventNote(turn.document, action.kind, action.reason.value, action.message)
        await self._kubernetes.emit(note)
        return True

    async def _ensure_all(self, turn: Turn, documents: tuple[Document, ...]) -> bool:
        """Ensure one after the other, in render's order."""
        changed = [await self._ensuring.ensure(one, turn.seen.uid, turn.present) for one in documents]
        return any(changed)


def _owner_uids(live: Document) -> list[str]:
    return [ref["uid"] for ref in live["metadata"].get("ownerReferences") or ()]
