"""The front door: `cuvil.compile`, `cuvil.load`, `CuvilModule`, the errors.

Re-exports only, each brought in when it is first asked for: importing this module costs neither NumPy nor the compiler.
"""

from importlib import import_module

TYPE_CHECKING = False
"""Type checkers take it as true; the module `typing` alone would cost most of this import."""

if TYPE_CHECKING:
    from cuvil_core.contract import InputSpec
    from cuvil_core.errors import (
        AccuracyError,
        ArtifactError,
        CuvilError,
        DigestError,
        InfrastructureError,
        InputError,
        InternalError,
        MissingError,
        ModelError,
        SizeError,
        SpeedError,
        TargetError,
        TimeLimitError,
        UnsupportedOpError,
    )
    from cuvil_core.front import compile
    from cuvil_core.runtime import CuvilModule, load
    from cuvil_core.version import VERSION as __version__

_HOMES = {
    "CuvilModule": "cuvil_core.runtime",
    "InputSpec": "cuvil_core.contract",
    "__version__": "cuvil_core.version",
    "compile": "cuvil_core.front",
    "load": "cuvil_core.runtime",
    **dict.fromkeys(
        (
            "AccuracyError",
            "ArtifactError",
            "CuvilError",
            "DigestError",
            "InfrastructureError",
            "InputError",
            "InternalError",
            "MissingError",
            "ModelError",
            "SizeError",
            "SpeedError",
            "TargetError",
            "TimeLimitError",
            "UnsupportedOpError",
        ),
        "cuvil_core.errors",
    ),
}

__all__ = [
    "AccuracyError",
    "ArtifactError",
    "CuvilError",
    "CuvilModule",
    "DigestError",
    "InfrastructureError",
    "InputError",
    "InputSpec",
    "InternalError",
    "MissingError",
    "ModelError",
    "SizeError",
    "SpeedError",
    "TargetError",
    "TimeLimitError",
    "UnsupportedOpError",
    "__version__",
    "compile",
    "load",
]


def __getattr__(name: str) -> object:
    """Bring a name in from its room (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cuvil' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    value = getattr(import_module(home), "VERSION" if name == "__version__" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
