"""How a call to the Kubernetes API can fail: the leaves of the error tree that only the gateways raise.

    KubernetesFailure (OperatorError)
    ├── WriteRefused            FencedError   this process may no longer write: end it
    ├── KubernetesUnavailable   RetryError    network, 429, 5xx; says when to ask again, if the server did
    ├── KubernetesConflict      RetryError    the object has moved on: observe again
    ├── KubernetesDenied        GiveUpError   RBAC or admission says no: an administrator's task
    ├── KubernetesInvalid       GiveUpError   the server refuses the document itself
    └── KindMissing             GiveUpError   the cluster lacks the CRD, or the namespace

Each message is one sentence with verb, resource and name, and never holds a token or a Secret's value.
"""

from cuvil_operator.errors import FencedError, GiveUpError, OperatorError, RetryError


class KubernetesFailure(OperatorError):
    """A call to the Kubernetes API that did not do what it should."""


class WriteRefused(KubernetesFailure, FencedError):
    """The Lease's deadline is over: another controller may be writing by now."""


class KubernetesUnavailable(KubernetesFailure, RetryError):
    """No answer, or an answer that promises to be another one later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds, where the server named them."""


class KubernetesConflict(KubernetesFailure, RetryError):
    """Somebody else wrote first."""


class KubernetesDenied(KubernetesFailure, GiveUpError):
    """The ServiceAccount may not do it, or an admission policy refuses."""


class KubernetesInvalid(KubernetesFailure, GiveUpError):
    """The document breaks its schema, a limit, or an immutable field."""


class KindMissing(KubernetesFailure, GiveUpError):
    """The API server does not know this kind."""
