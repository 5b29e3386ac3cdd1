"""Jobs of the compiler image: resolve, compile, validate; their command lines are docs/decisions/0002."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from cuvil_core.contract import InputSpec
from cuvil_operator import conventions as names
from cuvil_operator.api import CuvilModelSpec, ModelInput, Resources
from cuvil_operator.api.values import format_decimal
from cuvil_operator.facts import Platform, RunCompile, RunResolve, RunValidate
from cuvil_operator.render import pods
from cuvil_operator.render.identity import Document, Owner, document, labels

RESOLVE_TIMEOUT = timedelta(minutes=15)
"""A model of the greatest size over a slow line."""
MAX_RATIO = "1.05"
"""Of a new artifact's time to the stable one's, where both come from the same model."""
SMALL: Mapping[str, str] = {"cpu": "100m", "memory": "128Mi"}
LARGE: Mapping[str, str] = {"cpu": "250m", "memory": "512Mi"}
TERMINATION_LOG = "/dev/termination-log"


@dataclass(frozen=True, slots=True)
class _Work:
    """What differs between the three Jobs."""

    stage: names.Stage
    key: str
    image: str
    arguments: Sequence[str]
    timeout: timedelta
    resources: Document
    placed: Document = field(default_factory=dict)
    mounts: Sequence[pods.Mount] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def resolve_job(owner: Owner, spec: CuvilModelSpec, platform: Platform, wanted: RunResolve) -> Document:
    """Give the Job that finds the sha256 behind spec.model.uri."""
    uri, mounts, variables = _model(spec)
    pin = ["--sha256", spec.model.sha256] if spec.model.sha256 else []
    return _job(
        owner,
        platform,
        _Work(
            names.Stage.RESOLVE,
            wanted.key,
            platform.images.compiler,
            ["resolve", uri, *pin, *_fetch_limits(platform)],
            RESOLVE_TIMEOUT,
            pods.resources(Resources(), SMALL, None),
            mounts=mounts,
            variables=variables,
        ),
    )


def compile_job(owner: Owner, spec: CuvilModelSpec, platform: Platform, wanted: RunCompile) -> Document:
    """Give the namespace's Job of one compile key: no label names the model, since others may own it too."""
    uri, mounts, variables = _model(spec)
    options = spec.compile
    arguments = [
        *("compile", uri, "--sha256", wanted.model_sha256, "--format", spec.model.format.value),
        *("--target", spec.target, "--precision", spec.precision.value, "--opt-level", str(options.opt_level)),
        *(part for one in spec.model.inputs for part in ("--input", _input(one))),
        *("--push", platform.repository, *_insecure(platform), *_fetch_limits(platform)),
    ]
    gpu = wanted.gpu_resource
    return _job(
        owner,
        platform,
        _Work(
            names.Stage.COMPILE,
            wanted.key,
            wanted.image,
            arguments,
            options.timeout,
            pods.resources(options.resources, LARGE, gpu),
            pods.placement(spec.target, options.node_selector, options.tolerations, gpu),
            mounts,
            variables,
        ),
        shared=True,
    )


def validate_job(owner: Owner, spec: CuvilModelSpec, platform: Platform, wanted: RunValidate) -> Document:
    """Give the Job that proves an artifact where it will serve: on serving's nodes, with serving's resources."""
    uri, mounts, variables = _model(spec)
    accuracy, latency = spec.accuracy, spec.slo.latency
    baseline = ["--baseline", wanted.baseline, "--max-ratio", MAX_RATIO] if wanted.baseline else []
    golden = ["--golden", accuracy.golden_uri] if accuracy.golden_uri else []
    arguments = [
        *("verify", wanted.artifact, "--sha256", wanted.artifact_sha256),
        *("--model", uri, "--model-sha256", wanted.model_sha256),
        *("--rtol", format_decimal(accuracy.rtol), "--atol", format_decimal(accuracy.atol)),
        *("--latency-limit-ms", str(latency.threshold // timedelta(milliseconds=1))),
        *baseline,
        *golden,
        *_insecure(platform),
    ]
    serving, gpu = spec.serving, wanted.gpu_resource
    return _job(
        owner,
        platform,
        _Work(
            names.Stage.VALIDATE,
            wanted.key,
            wanted.image,
            arguments,
            spec.compile.timeout,
            pods.resources(serving.resources, LARGE, gpu),
            pods.placement(spec.target, serving.node_selector, serving.tolerations, gpu),
            mounts,
            variables,
        ),
    )


def _job(owner: Owner, platform: Platform, work: _Work, *, shared: bool = False) -> Document:
    digest = {names.LABEL_STAGE: work.stage.value, names.LABEL_KEY: work.key[: names.KEY_DIGITS]}
    labelled = labels(None if shared else owner, work.stage.value, digest)
    registry, registry_variables = pods.registry_credentials(platform.registry_secret)
    mounts = [
        pods.scratch("tmp", "/tmp"),
        pods.scratch("cache", pods.CACHE),
        *work.mounts,
        *registry,
    ]
    caches = {
        "CUVIL_CACHE_DIR": f"{pods.CACHE}/compiled",
        "ZIG_GLOBAL_CACHE_DIR": f"{pods.CACHE}/zig",
        "ZIG_LOCAL_CACHE_DIR": f"{pods.CACHE}/zig-local",
    }
    container = {
        "name": work.stage.value,
        "image": work.image,
        "command": ["cuvil"],
        "args": [*work.arguments, "--termination-log", TERMINATION_LOG],
        "env": pods.environment({**caches, **registry_variables, **_reach(platform), **work.variables}),
        "resources": work.resources,
    }
    pod = pods.pod_spec(container, mounts, work.placed, restartPolicy="Never", terminationGracePeriodSeconds=10)
    body: dict[str, Any] = {
        # the operator reads the exit code and decides whether another try makes sense
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "activeDeadlineSeconds": _whole(work.timeout),
        "template": {"metadata": {"labels": labelled}, "spec": pod},
    }
    return document(
        ("batch/v1", "Job"),
        owner,
        names.job_name(work.stage, owner.name, work.key),
        labelled,
        annotations={names.ANNOTATION_KEY: work.key},
        controller=not shared,
        spec=body,
    )


def _model(spec: CuvilModelSpec) -> tuple[str, list[pods.Mount], dict[str, str]]:
    """Give the model's URI as the container sees it, and the mounts and variables that this takes."""
    uri = spec.model.uri
    if uri.startswith("configmap://"):
        name, _, key = uri.removeprefix("configmap://").partition("/")
        mount, variables = pods.user_config_map(name)
        return f"file://{mount.path}/{key}", [mount], variables
    if spec.model.secret_ref is None:
        return uri, [], {}
    mount = pods.secret("credentials", pods.CREDENTIALS, spec.model.secret_ref.name)
    return uri, [mount], {"CUVIL_CREDENTIALS_DIR": pods.CREDENTIALS}


def _input(one: ModelInput) -> str:
    bounds = {symbol: (extent.min, extent.max) for symbol, extent in one.bounds.items()}
    return json.dumps(asdict(InputSpec(one.name, one.shape, bounds)), separators=(",", ":"), sort_keys=True)


def _reach(platform: Platform) -> dict[str, str]:
    """Give the variables that say which hosts may be reached, redirects included, and which speak plain HTTP."""
    registry = platform.repository.partition("/")[0]
    allowed = [*platform.allowed_hosts, registry.partition(":")[0]] if platform.allowed_hosts else []
    wanted = {
        "CUVIL_ALLOWED_HOSTS": ",".join(allowed),
        "CUVIL_INSECURE_REGISTRIES": registry if platform.insecure_registry else "",
    }
    return {name: value for name, value in wanted.items() if value}


def _fetch_limits(platform: Platform) -> list[str]:
    return ["--max-bytes", str(platform.max_model_bytes)]


def _insecure(platform: Platform) -> list[str]:
    return ["--insecure-registry"] if platform.insecure_registry else []


def _whole(span: timedelta) -> int:
    """Give whole seconds, rounded up."""
    return -(span // timedelta(seconds=-1))
