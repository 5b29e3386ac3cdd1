"""What fake and real Kubernetes gateway must both do; each check is a coroutine over a World."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cuvil_operator.conventions import EventKind
from cuvil_operator.gateways import resources
from cuvil_operator.gateways.failures import KubernetesConflict, KubernetesInvalid, WriteRefused
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.protocols import Document, EventNote, KubernetesGateway

PARENT = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "missing"}
ACCEPTED = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2030-01-01T12:00:00Z",
}
TAKEN = {"parents": [{"controllerName": "contract.example/test", "parentRef": PARENT, "conditions": [ACCEPTED]}]}
FREE: Document = {"parents": []}

Condition = Callable[[], Awaitable[Any]]


@dataclass
class World:
    """One empty namespace of a cluster, fake or real."""

    namespace: str
    gateway: KubernetesGateway
    fence: Fence
    fresh: Callable[[], KubernetesGateway]
    """Gives a gateway as a restarted controller has it."""
    as_other: Callable[[Document], Awaitable[Any]]
    """Applies as another field manager."""
    eventually: Callable[[Condition], Awaitable[Any]]
    """Waits until the condition gives something true; the fake's are true at once."""

    def config_map(self, name: str, data: dict[str, str], **more: Any) -> Document:
        meta = {"name": name, "namespace": self.namespace} | more.pop("metadata", {})
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data} | more

    def route(self, name: str, host: str = "a.example") -> Document:
        """A kind with a status of its own that no controller writes: its Gateway does not exist."""
        return {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"parentRefs": [PARENT], "hostnames": [host]},
        }

    def job(self, name: str, owners: list[Document]) -> Document:
        """A suspended Job: no kubelet starts it."""
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none.invalid/none:1"}]}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace, "ownerReferences": owners},
            "spec": {"suspend": True, "template": {"spec": pod}},
        }


def owner(document: Document) -> Document:
    """Give the ownerReference to a stored document."""
    meta = document["metadata"]
    names = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
    return names | {"name": meta["name"], "uid": meta["uid"]}


async def an_equal_apply_changes_nothing(world: World) -> None:
    """Applying the same document twice keeps resourceVersion."""
    first = await world.gateway.apply(world.config_map("a", {"k": "1"}))
    again = await world.gateway.apply(world.config_map("a", {"k": "1"}))
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    assert first["metadata"]["uid"] == again["metadata"]["uid"]


async def an_apply_drops_what_it_no_longer_names(world: World) -> None:
    """A field that only Cuvil owned goes when the next apply lacks it; another manager's field stays."""
    await world.gateway.apply(world.config_map("a", {"k": "1", "gone": "1"}))
    await world.as_other(world.config_map("a", {"theirs": "1"}))
    after = await world.gateway.apply(world.config_map("a", {"k": "2"}))
    assert after["data"] == {"k": "2", "theirs": "1"}


async def an_apply_takes_fields_over(world: World) -> None:
    """Force makes Cuvil the owner of a field that another manager had set."""
    await world.as_other(world.config_map("a", {"k": "theirs"}))
    await world.gateway.apply(world.config_map("a", {"k": "ours"}))
    after = await world.gateway.apply(world.config_map("a", {"other": "1"}))
    assert after["data"] == {"other": "1"}


async def only_one_creates(world: World) -> None:
    """A second create of the same name is a conflict and changes nothing."""
    stored = await world.gateway.create(world.config_map("a", {"k": "1"}))
    with pytest.raises(KubernetesConflict):
        await world.gateway.create(world.config_map("a", {"k": "2"}))
    now = await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "a")
    assert now is not None and now["data"] == {"k": "1"}
    assert now["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def what_is_not_there_is_none(world: World) -> None:
    """A missing object reads as None and deletes as False."""
    assert await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "missing") is None
    assert await world.gateway.delete(resources.CONFIG_MAPS, world.namespace, "missing") is False


async def a_delete_heeds_the_uid(world: World) -> None:
    """An object of the same name but another uid is not deleted."""
    stored = await world.gateway.apply(world.config_map("a", {}))
    other = "00000000-0000-4000-8000-ffffffffffff"
    assert await world.gateway.delete(resources.CONFIG_MAPS, world.namespace, "a", other) is False
    assert await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "a") is not None
    assert await world.gateway.delete(resources.CONFIG_MAPS, world.namespace, "a", stored["metadata"]["uid"]) is True
    assert await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "a") is None


async def a_list_selects_by_label(world: World) -> None:
    """All labels must match, an empty value asks for the key, and order is by name."""
    for name, labels in (("b", {"t": "1"}), ("a", {"t": "1", "u": "x"}), ("c", {"u": "y"})):
        await world.gateway.apply(world.config_map(name, {}, metadata={"labels": labels}))
    for labels, names in (({"t": "1"}, ["a", "b"]), ({"u": ""}, ["a", "c"]), ({"t": "1", "u": "x"}, ["a"])):
        found = await world.gateway.list(resources.CONFIG_MAPS, world.namespace, labels)
        assert [one["metadata"]["name"] for one in found] == names, labels
        assert {one["kind"] for one in found} == {"ConfigMap"}


async def stamps_are_the_cheap_list(world: World) -> None:
    """Stamps name the same objects in the same versions, with their labels."""
    stored = await world.gateway.apply(world.config_map("a", {}, metadata={"labels": {"t": "1"}}))
    (stamp,) = await world.gateway.stamps(resources.CONFIG_MAPS, world.namespace, {"t": "1"})
    meta = stored["metadata"]
    assert (stamp.name, stamp.uid, stamp.resource_version) == (meta["name"], meta["uid"], meta["resourceVersion"])
    assert stamp.namespace == world.namespace and stamp.labels["t"] == "1"


async def status_is_apart(world: World) -> None:
    """A status write replaces the status, keeps spec and generation; a spec write raises generation, keeps status."""
    stored = await world.gateway.apply(world.route("m"))
    where = (resources.HTTP_ROUTES, world.namespace, "m")
    first = await world.gateway.patch_status(*where, TAKEN, stored["metadata"]["resourceVersion"])
    assert first["metadata"]["generation"] == stored["metadata"]["generation"]
    assert first["spec"] == stored["spec"]
    second = await world.gateway.patch_status(*where, FREE, first["metadata"]["resourceVersion"])
    assert second["status"] == FREE
    third = await world.gateway.apply(world.route("m", host="b.example"))
    assert third["metadata"]["generation"] == stored["metadata"]["generation"] + 1
    assert third["status"] == FREE


async def a_stale_status_conflicts(world: World) -> None:
    """A status for a version that has moved on, or for an object that is gone, is a conflict."""
    stored = await world.gateway.apply(world.route("m"))
    await world.gateway.apply(world.route("m", host="b.example"))
    where = (resources.HTTP_ROUTES, world.namespace, "m")
    with pytest.raises(KubernetesConflict):
        await world.gateway.patch_status(*where, FREE, stored["metadata"]["resourceVersion"])
    with pytest.raises(KubernetesConflict):
        await world.gateway.patch_status(resources.HTTP_ROUTES, world.namespace, "gone", FREE, "1")


async def an_immutable_config_map_stays(world: World) -> None:
    """Other data for an immutable ConfigMap is refused as invalid."""
    await world.gateway.apply(world.config_map("a", {"k": "1"}, immutable=True))
    with pytest.raises(KubernetesInvalid):
        await world.gateway.apply(world.config_map("a", {"k": "2"}, immutable=True))


async def what_is_owned_goes_with_its_last_owner(world: World) -> None:
    """Garbage collection deletes a dependent when its last owner is deleted, not before."""
    one = await world.gateway.apply(world.config_map("one", {}))
    two = await world.gateway.apply(world.config_map("two", {}))
    child = world.config_map("child", {}, metadata={"ownerReferences": [owner(one), owner(two)]})
    await world.gateway.apply(child)
    await world.gateway.delete(resources.CONFIG_MAPS, world.namespace, "one")
    assert await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "child") is not None
    await world.gateway.delete(resources.CONFIG_MAPS, world.namespace, "two")

    async def gone() -> bool:
        return await world.gateway.get(resources.CONFIG_MAPS, world.namespace, "child") is None

    await world.eventually(gone)


async def a_job_can_gain_and_lose_owners(world: World) -> None:
    """set_owners replaces the list of that version and conflicts on an older one."""
    one = await world.gateway.apply(world.config_map("one", {}))
    two = await world.gateway.apply(world.config_map("two", {}))
    stale = (await world.gateway.create(world.job("j", [owner(one)])))["metadata"]["resourceVersion"]
    await _own(world, [owner(one), owner(two)])
    with pytest.raises(KubernetesConflict):
        await world.gateway.set_owners(resources.JOBS, world.namespace, "j", [owner(two)], stale)
    left = await _own(world, [owner(two)])
    assert [ref["name"] for ref in left["metadata"]["ownerReferences"]] == ["two"]


async def _own(world: World, owners: list[Document]) -> Document:
    """Set the owners of the newest version, again where the Job controller was faster."""
    for _ in range(10):
        job = await world.gateway.get(resources.JOBS, world.namespace, "j")
        assert job is not None
        version = job["metadata"]["resourceVersion"]
        try:
            after = await world.gateway.set_owners(resources.JOBS, world.namespace, "j", owners, version)
        except KubernetesConflict:
            continue
        assert {ref["uid"] for ref in after["metadata"]["ownerReferences"]} == {one["uid"] for one in owners}
        return after
    raise AssertionError("ten conflicts in a row")


async def an_event_is_counted_not_repeated(world: World) -> None:
    """The same note gives one Event: once from one process, counted up by a restarted one."""
    about = await world.gateway.apply(world.config_map("a", {}))
    note = EventNote(about, EventKind.WARNING, "RolledBack", "the canary was slow")
    await world.gateway.emit(note)
    await world.gateway.emit(note)
    await world.fresh().emit(note)
    (event,) = await world.gateway.list(resources.EVENTS, world.namespace)
    assert (event["count"], event["reason"], event["type"]) == (2, "RolledBack", "Warning")
    assert event["involvedObject"]["uid"] == about["metadata"]["uid"]


async def a_closed_fence_stops_every_write(world: World) -> None:
    """After the Lease's deadline no write gets through and nothing changes; reads still work."""
    stored = await world.gateway.apply(world.config_map("a", {"k": "1"}))
    version = stored["metadata"]["resourceVersion"]
    where = (resources.CONFIG_MAPS, world.namespace, "a")
    world.fence.close()
    with pytest.raises(WriteRefused):
        await world.gateway.apply(world.config_map("a", {"k": "2"}))
    with pytest.raises(WriteRefused):
        await world.gateway.create(world.config_map("b", {}))
    with pytest.raises(WriteRefused):
        await world.gateway.delete(*where)
    with pytest.raises(WriteRefused):
        await world.gateway.set_owners(*where, [], version)
    with pytest.raises(WriteRefused):
        await world.gateway.patch_status(resources.HTTP_ROUTES, world.namespace, "m", FREE, "1")
    with pytest.raises(WriteRefused):
        await world.gateway.emit(EventNote(stored, EventKind.NORMAL, "Late", "too late"))
    now = await world.gateway.get(*where)
    assert now is not None and now["metadata"]["resourceVersion"] == version


CHECKS = (
    an_equal_apply_changes_nothing,
    an_apply_drops_what_it_no_longer_names,
    an_apply_takes_fields_over,
    only_one_creates,
    what_is_not_there_is_none,
    a_delete_heeds_the_uid,
    a_list_selects_by_label,
    stamps_are_the_cheap_list,
    status_is_apart,
    a_stale_status_conflicts,
    an_immutable_config_map_stays,
    what_is_owned_goes_with_its_last_owner,
    a_job_can_gain_and_lose_owners,
    an_event_is_counted_not_repeated,
    a_closed_fence_stops_every_write,
)
NAMES = tuple(check.__name__ for check in CHECKS)
