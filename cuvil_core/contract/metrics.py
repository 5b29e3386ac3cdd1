"""Time series of a serving pod and how its requests end: written by `serving`, read by queries, rules, dashboards."""

from enum import StrEnum


class ServingMetric(StrEnum):
    """Names; each carries the labels `model` and `revision`."""

    REQUESTS = "cuvil_requests_total"
    """Counter, with the label `outcome`: answered inference requests."""
    DURATION = "cuvil_request_duration_seconds"
    """Histogram of the outcomes ok and error; the SLO's threshold is among its bounds."""
    DURATION_BUCKET = "cuvil_request_duration_seconds_bucket"
    QUEUE_LENGTH = "cuvil_queue_length"
    NON_FINITE = "cuvil_nonfinite_outputs_total"


class RequestOutcome(StrEnum):
    """Label `outcome` of REQUESTS. The error objective counts `error` and `rejected` only."""

    OK = "ok"
    CLIENT_ERROR = "client_error"
    ERROR = "error"
    REJECTED = "rejected"
