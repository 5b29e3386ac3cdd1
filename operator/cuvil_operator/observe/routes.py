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
    refused = _refusal(route)
    return RouteSeen(True, percents(counted), accepted=not refused, message=refused)


def _refusal(route: Document) -> str:
    """Give the Gateway's sentence where it refuses the present generation, for any parent."""
    generation = route["metadata"].get("generation")
    for parent in (route.get("status") or {}).get("parents") or ():
        for condition in parent.get("conditions") or ():
            told = condition.get("observedGeneration", generation) == generation
            if told and condition["type"] in ("Accepted", "ResolvedRefs") and condition["status"] == "False":
                return f"{condition.get('reason', condition['type'])}: {condition.get('message', '')}".rstrip(": ")
    return ""


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
