"""Every kind of the Kubernetes API that the controller touches; a kind outside this table cannot be reached."""

from cuvil_operator import conventions
from cuvil_operator.gateways.failures import KubernetesInvalid
from cuvil_operator.gateways.protocols import Document, Resource

CUVIL_MODELS = Resource(conventions.API_VERSION, conventions.KIND, conventions.PLURAL)
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments")
EVENTS = Resource("v1", "Event", "events")
HTTP_ROUTES = Resource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
JOBS = Resource("batch/v1", "Job", "jobs")
LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")
NODES = Resource("v1", "Node", "nodes", namespaced=False)
POD_DISRUPTION_BUDGETS = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD_MONITORS = Resource("monitoring.coreos.com/v1", "PodMonitor", "podmonitors")
PODS = Resource("v1", "Pod", "pods")
PROMETHEUS_RULES = Resource("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules")
SERVICES = Resource("v1", "Service", "services")

RESOURCES: tuple[Resource, ...] = (
    CUVIL_MODELS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    HTTP_ROUTES,
    JOBS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PODS,
    PROMETHEUS_RULES,
    SERVICES,
)

_BY_KIND = {(one.api_version, one.kind): one for one in RESOURCES}


def resource_of(document: Document) -> Resource:
    """Give the resource of a document by its apiVersion and kind; KubernetesInvalid where the table lacks it."""
    named = (str(document.get("apiVersion", "")), str(document.get("kind", "")))
    if named not in _BY_KIND:
        raise KubernetesInvalid(
            f"the controller does not handle {named[1] or 'an object without kind'} of {named[0] or 'no apiVersion'}: "
            "add it to gateways/resources.py and to the chart's roles"
        )
    return _BY_KIND[named]


def path_of(resource: Resource, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """Give the URL path of one object, or of the collection where name is empty."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    parts = [root]
    if resource.namespaced and namespace:
        parts.append(f"namespaces/{namespace}")
    parts.extend(part for part in (resource.plural, name, subresource) if part)
    return "/".join(parts)
