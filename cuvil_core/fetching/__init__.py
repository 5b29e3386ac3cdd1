"""Bytes from elsewhere, and artifacts to the registry.

Holds: URIs, credentials read from mounted files, HTTP with bounds, the OCI distribution API. Takes a URI, a size
bound and a digest → gives a checked file; takes an artifact → gives its reference by digest. Must not read models,
log or return a credential, or write a file that was not checked. Standard library only: the runtime image ships it.
"""

from cuvil_core.fetching.artifacts import pull_artifact, push_artifact, push_model
from cuvil_core.fetching.fetch import Fetched, fetch, resolve
from cuvil_core.fetching.reference import parse_repository
from cuvil_core.fetching.web import check_url

__all__ = [
    "Fetched",
    "check_url",
    "fetch",
    "parse_repository",
    "pull_artifact",
    "push_artifact",
    "push_model",
    "resolve",
]
