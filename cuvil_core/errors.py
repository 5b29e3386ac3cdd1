"""Every error that Cuvil raises to its callers, split by what the caller does.

CuvilError                     exit code  what the caller does
├── ModelError                 10         mends the model file
│   └── UnsupportedOpError     11         changes the model, or adds the op (docs/how-to/add-an-op.md)
├── AccuracyError              12         takes a wider bound, or reports it with the model
├── SpeedError                 13         takes other hardware or a wider bound
├── SizeError                  14         raises the bound or shrinks the model
├── TimeLimitError             15         raises the limit
├── ArtifactError              16         compiles or fetches the artifact again
│   └── DigestError            18         corrects the digest or the source
├── TargetError                17         takes another target or machine
├── InputError                 2          passes the right names, shapes and dtypes
├── MissingError               19         corrects the URI or the credentials
├── InfrastructureError        20         tries again later
└── InternalError              70         reports a fault of Cuvil
"""

from cuvil_core.contract.exit_codes import ExitCode


class CuvilError(Exception):
    """One sentence: what, where, how to fix."""

    code: ExitCode = ExitCode.INTERNAL

    @property
    def reason(self) -> str:
        """The constant that conditions and termination messages carry, such as `UnsupportedOp`."""
        return type(self).__name__.removesuffix("Error")


class ModelError(CuvilError):
    """The model file is truncated, altered, or breaks its own format."""

    code = ExitCode.BAD_MODEL


class UnsupportedOpError(ModelError):
    """The model is sound but uses something that Cuvil does not compile; the message names op, node and opset."""

    code = ExitCode.UNSUPPORTED_OP


class AccuracyError(CuvilError):
    """An output leaves the accuracy bound."""

    code = ExitCode.WRONG_NUMBERS


class SpeedError(CuvilError):
    """The latency bound is missed."""

    code = ExitCode.TOO_SLOW


class SizeError(CuvilError):
    """A size bound is exceeded."""

    code = ExitCode.TOO_LARGE


class TimeLimitError(CuvilError):
    """A time limit is exceeded."""

    code = ExitCode.TIMEOUT


class ArtifactError(CuvilError):
    """The artifact is truncated, altered, or of another contract version."""

    code = ExitCode.BAD_ARTIFACT


class DigestError(ArtifactError):
    """The bytes are not those that the digest names."""

    code = ExitCode.DIGEST_MISMATCH


class TargetError(CuvilError):
    """No back end for the target, or this machine cannot run it."""

    code = ExitCode.UNSUPPORTED_TARGET


class InputError(CuvilError):
    """A caller's tensor has the wrong name, shape or dtype."""

    code = ExitCode.USAGE


class MissingError(CuvilError):
    """The thing named does not exist there."""

    code = ExitCode.NOT_FOUND


class InfrastructureError(CuvilError):
    """Network, registry or disk failed; the same call may succeed later."""

    code = ExitCode.INFRASTRUCTURE


class InternalError(CuvilError):
    """A fault of Cuvil itself."""

    code = ExitCode.INTERNAL
