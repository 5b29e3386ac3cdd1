"""The controller's settings: read from the environment once, then frozen."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cuvil_operator.errors import SettingsError
from cuvil_operator.facts import Images, Platform

PREFIX = "CUVIL_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the chart's values set."""

    platform: Platform
    prometheus_url: str
    """Base address of the Prometheus HTTP API, without /api/v1."""
    prometheus_timeout_s: float
    namespaces: tuple[str, ...]
    """Watched namespaces; empty watches the whole cluster."""
    own_namespace: str
    """Where the Lease lies."""
    identity: str
    """Holder name in the Lease: the pod's name."""
    lease_name: str
    lease_seconds: int
    resync_s: float
    workers: int
    """Reconciles that run at the same time, each for another model."""
    metrics_port: int
    health_port: int
    api_writes_per_second: float
    log_level: str


def read(environment: Mapping[str, str]) -> Settings:
    """Build the settings; raises SettingsError that names the variable and what to write."""
    text = _Reader(environment)
    platform = Platform(
        images=Images(text.need("COMPILER_IMAGE"), text.need("RUNTIME_IMAGE")),
        repository=_repository(text.need("REPOSITORY")),
        insecure_registry=text.flag("INSECURE_REGISTRY", False),
        max_model_bytes=text.whole("MAX_MODEL_BYTES", 2 << 30, 1 << 10),
        allowed_hosts=text.names("ALLOWED_HOSTS"),
        share_across_namespaces=text.flag("SHARE_ACROSS_NAMESPACES", False),
        registry_secret=text.get("REGISTRY_SECRET", ""),
    )
    return Settings(
        platform=platform,
        prometheus_url=_address(text.need("PROMETHEUS_URL")),
        prometheus_timeout_s=text.seconds("PROMETHEUS_TIMEOUT", 5.0),
        namespaces=text.names("NAMESPACES"),
        own_namespace=text.need("NAMESPACE"),
        identity=text.need("IDENTITY"),
        lease_name=text.get("LEASE_NAME", "cuvil-operator"),
        lease_seconds=text.whole("LEASE_SECONDS", 15, 3),
        resync_s=text.seconds("RESYNC", 300.0),
        workers=text.whole("WORKERS", 8, 1),
        metrics_port=text.whole("METRICS_PORT", 9090, 1),
        health_port=text.whole("HEALTH_PORT", 8081, 1),
        api_writes_per_second=text.seconds("API_WRITES_PER_SECOND", 50.0),
        log_level=text.choice("LOG_LEVEL", "info", ("debug", "info", "warning", "error")),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Variables by their name without the prefix; an empty text counts as absent, as Helm renders unset values."""

    environment: Mapping[str, str]

    def get(self, name: str, default: str) -> str:
        return self.environment.get(PREFIX + name, "").strip() or default

    def need(self, name: str) -> str:
        found = self.get(name, "")
        if not found:
            raise SettingsError(f"{PREFIX}{name} is not set; the chart sets it, elsewhere export it before starting")
        return found

    def flag(self, name: str, default: bool) -> bool:
        return self.choice(name, str(default).lower(), ("true", "false")) == "true"

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        found = self.get(name, default).lower()
        if found not in allowed:
            raise SettingsError(f"{PREFIX}{name} is {found!r}; write one of {', '.join(allowed)}")
        return found

    def whole(self, name: str, default: int, least: int) -> int:
        found = self.get(name, str(default))
        if not re.fullmatch(r"[0-9]{1,18}", found) or int(found) < least:
            raise SettingsError(f"{PREFIX}{name} is {found!r}; write a whole number of at least {least}")
        return int(found)

    def seconds(self, name: str, default: float) -> float:
        found = self.get(name, str(default))
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", found) or float(found) <= 0:
            raise SettingsError(f"{PREFIX}{name} is {found!r}; write a number above 0, such as {default:g}")
        return float(found)

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(part for one in self.get(name, "").split(",") if (part := one.strip()))


def _repository(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9.\-]+(:[0-9]{1,5})?(/[a-z0-9._\-]+)+", text):
        raise SettingsError(f"{PREFIX}REPOSITORY is {text!r}; write HOST[:PORT]/REPOSITORY without a scheme or a tag")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/[^\s]*)?", text):
        raise SettingsError(f"{PREFIX}PROMETHEUS_URL is not an http(s) address; write http://HOST:PORT")
    return text.rstrip("/")
