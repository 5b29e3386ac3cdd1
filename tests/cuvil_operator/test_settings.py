"""Settings from the environment."""

import pytest

from cuvil_operator import settings
from cuvil_operator.errors import SettingsError

WHOLE = {
    "CUVIL_COMPILER_IMAGE": "registry/compiler@sha256:1",
    "CUVIL_RUNTIME_IMAGE": "registry/runtime@sha256:2",
    "CUVIL_REPOSITORY": "registry.cuvil:5000/cuvil/artifacts",
    "CUVIL_PROMETHEUS_URL": "http://prometheus.monitoring:9090/",
    "CUVIL_NAMESPACE": "cuvil-system",
    "CUVIL_IDENTITY": "cuvil-operator-0",
}


def test_what_must_be_set_and_what_has_defaults() -> None:
    """The six names suffice; the address loses its last slash."""
    told = settings.read(WHOLE)
    assert told.prometheus_url == "http://prometheus.monitoring:9090"
    assert (told.namespaces, told.workers, told.platform.insecure_registry) == ((), 8, False)


@pytest.mark.parametrize("name", WHOLE)
def test_a_missing_name_is_named(name: str) -> None:
    """The message says which variable is missing; an empty one counts as missing."""
    for value in ("", "  "):
        with pytest.raises(SettingsError, match=name):
            settings.read(WHOLE | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUVIL_WORKERS", "0"),
        ("CUVIL_WORKERS", "many"),
        ("CUVIL_INSECURE_REGISTRY", "maybe"),
        ("CUVIL_RESYNC", "-1"),
        ("CUVIL_RESYNC", "nan"),
        ("CUVIL_LOG_LEVEL", "loud"),
        ("CUVIL_REPOSITORY", "https://registry/x"),
        ("CUVIL_REPOSITORY", "registry"),
        ("CUVIL_PROMETHEUS_URL", "prometheus:9090"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(name: str, value: str) -> None:
    """The message names the variable and what to write."""
    with pytest.raises(SettingsError, match=name):
        settings.read(WHOLE | {name: value})


def test_lists_are_split_at_commas() -> None:
    """Blanks and empty parts do not matter."""
    told = settings.read(WHOLE | {"CUVIL_NAMESPACES": "a, b,,", "CUVIL_ALLOWED_HOSTS": "models.example"})
    assert (told.namespaces, told.platform.allowed_hosts) == (("a", "b"), ("models.example",))
