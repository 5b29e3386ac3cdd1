"""HTTPRoute, or Service and ready pods → RouteSeen: pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cuvil_operator import conventions
from cuvil_operator.facts import RouteSeen
from cuvil_operator.gateways.protocols import Document
from cuvil_operator.observe.pods import is_ready
from cuvil_operator.observe.workloads import revision_of


def read_http_route(model: str, route: Document | None) -> RouteSeen:
    """Read the weights that the Gateway has been given, and whether it took them."""
    if route is None:
        return RouteSeen()
    counted: Counter[str] = Counter()
    for rule in route["spec"].get("rules") or ():
        for backend in rule.get("backendRefs") or ():
            revision = str(backend["name"]).removeprefix(f"{model}-")
            counted[revision] += int(backend.get("weight", 1))
    missing = _not_in_force(route)
    return RouteSeen(True, percents(counted), accepted=not missing, message=missing)


def _not_in_force(route: Document) -> str:
    """Say why the Gateway does not route by the present generation; empty where it does.

    Weights that no Gateway has taken are a wish: it may be missing, refuse the route, or still go by the old ones.
    """
    told = [
        condition
        for parent in (route.get("status") or {}).get("parents") or ()
        for condition in parent.get("conditions") or ()
        if condition.get("observedGeneration", route["metadata"].get("generation"))
        == route["metadata"].get("generation")
    ]
    for condition in told:
        if condition["type"] in ("Accepted", "ResolvedRefs") and condition["status"] == "False":
            return f"{condition.get('reason', condition['type'])}: {condition.get('message', '')}".rstrip(": ")
    if any(one["type"] == "Accepted" and one["status"] == "True" for one in told):
        return ""
    return "the Gateway has not taken it yet; is spec.rollout.traffic.gateway right, and does it allow this namespace?"


def read_service(service: Document | None, pods: Iterable[Document]) -> RouteSeen:
    """Read where the one Service sends: the revision it selects, or the shares of all ready pods."""
    if service is None:
        return RouteSeen()
    selector: Mapping[str, Any] = service["spec"].get("selector") or {}
    pinned = str(selector.get(conventions.LABEL_REVISION, ""))
    if pinned:
        return RouteSeen(True, {pinned: 100})
    return RouteSeen(True, percents(Counter(revision_of(pod) for pod in pods if is_ready(pod))), open=True)


def percents(counted: Mapping[str, int]) -> dict[str, int]:
    """Turn counts into whole percents that sum to 100, by largest remainder; {} where nothing counts.

    {a: 2, b: 1} → {a: 67, b: 33}
    """
    total = sum(counted.values())
    if total <= 0:
        return {}
    shares = {name: count * 100 // total for name, count in counted.items() if count > 0}
    by_remainder = sorted(shares, key=lambda name: (-(counted[name] * 100 % total), name))
    for name in by_remainder[: 100 - sum(shares.values())]:
        shares[name] += 1
    return shares
