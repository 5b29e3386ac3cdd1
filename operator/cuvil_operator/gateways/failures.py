"""How a call to the Kubernetes API can fail, split by what the caller does.

    KubernetesFailure
    ├── WriteRefused            this process may no longer write: end it
    ├── KubernetesUnavailable   ask again later (network, 429, 5xx); says when, if the server did
    ├── KubernetesConflict      the object has moved on: observe again
    ├── KubernetesDenied        RBAC or admission says no: an administrator's task
    ├── KubernetesInvalid       the server refuses the document itself: a fault of Cuvil or of a spec
    └── KindMissing             the cluster lacks the CRD

Each message is one sentence with verb, resource and name, and never holds a token or a Secret's value.
"""


class KubernetesFailure(Exception):
    """A call to the Kubernetes API that did not do what it should."""


class WriteRefused(KubernetesFailure):
    """The Lease's deadline is over: another controller may be writing by now."""


class KubernetesUnavailable(KubernetesFailure):
    """No answer, or an answer that promises to be another one later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds, where the server named them."""


class KubernetesConflict(KubernetesFailure):
    """Somebody else wrote first."""


class KubernetesDenied(KubernetesFailure):
    """The ServiceAccount may not do it, or an admission policy refuses."""


class KubernetesInvalid(KubernetesFailure):
    """The document breaks its schema, a limit, or an immutable field."""


class KindMissing(KubernetesFailure):
    """The API server does not know this kind."""
