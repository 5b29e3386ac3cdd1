"""What was asked of the compiler and what an artifact says of itself."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

CONTRACT_VERSION = 1
"""Raised when a reader of the old version would misread the new one."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A caller's word on one input: names and bounds for its symbolic dims."""

    name: str
    shape: tuple[int | str, ...]
    """A number for a fixed extent, a name for a symbolic one."""
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Symbol → (least, greatest) extent."""


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """All that decides the bytes of an artifact, but for the model file itself and the compiler."""

    target: str = "native"
    precision: str = "fp32"
    format: str = "onnx"
    opt_level: int = 2
    inputs: tuple[InputSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of an artifact."""

    name: str
    dtype: str
    """NumPy's name (float32, int64, …), or that of ml_dtypes (bfloat16, int4, float8_e4m3fn, …)."""
    shape: tuple[int | str, ...]
    """A number, or the text of a symbolic dim such as `N` or `(H + 1)//2`."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of bytes in the artifact file."""

    name: str
    """`lib:x86_64-avx2`, `lib:x86_64-avx512`, `weights`."""
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The head of an artifact: what it computes, from what it was made, where its parts lie."""

    name: str
    model_sha256: str
    request: CompileRequest
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    segments: tuple[Segment, ...]
    compiler: str
    """Version of Cuvil that made it."""
    metadata: dict[str, str] = field(default_factory=dict)
    """The model file's own metadata (for instance a character table), copied as it is."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Counts for reports: ops, kernels, weight bytes, arena bytes at the least and greatest bounds."""
    contract: int = CONTRACT_VERSION

    def to_json(self) -> str:
        """Give a canonical text: equal manifests give equal bytes."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Read a manifest; raises ValueError that says what is wrong."""
        try:
            raw = json.loads(text)
        except RecursionError as fault:
            raise ValueError("the manifest is nested too deeply") from fault
        if not isinstance(raw, dict) or raw.get("contract") != CONTRACT_VERSION:
            raise ValueError(f"this manifest is not of contract version {CONTRACT_VERSION}")
        try:
            return cls(
                name=str(raw["name"]),
                model_sha256=str(raw["model_sha256"]),
                request=_request(raw["request"]),
                inputs=tuple(map(_tensor, raw["inputs"])),
                outputs=tuple(map(_tensor, raw["outputs"])),
                segments=tuple(map(_segment, raw["segments"])),
                compiler=str(raw["compiler"]),
                metadata={str(k): str(v) for k, v in raw["metadata"].items()},
                facts=dict(raw["facts"]),
            )
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as fault:
            raise ValueError(f"the manifest is not whole: {fault}") from fault


def _tensor(raw: dict[str, Any]) -> TensorSpec:
    return TensorSpec(str(raw["name"]), str(raw["dtype"]), _shape(raw["shape"]))


def _shape(raw: list[Any]) -> tuple[int | str, ...]:
    if any(type(one) not in (int, str) for one in raw):
        raise TypeError("a shape holds numbers and names only")
    return tuple(raw)


def _segment(raw: dict[str, Any]) -> Segment:
    part = Segment(**raw)
    if type(part.offset) is not int or type(part.size) is not int or not isinstance(part.name, str):
        raise TypeError("a segment has a name, an offset and a size")
    return part


def _request(raw: dict[str, Any]) -> CompileRequest:
    inputs = tuple(
        InputSpec(str(one["name"]), _shape(one["shape"]), {k: (int(v[0]), int(v[1])) for k, v in one["bounds"].items()})
        for one in raw["inputs"]
    )
    return CompileRequest(str(raw["target"]), str(raw["precision"]), str(raw["format"]), int(raw["opt_level"]), inputs)
