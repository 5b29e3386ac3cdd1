"""Exit codes of every `cuvil` command; the operator decides by them whether to retry, give up or blame the spec."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What ended a command. Only INFRASTRUCTURE is worth a retry with the same inputs."""

    OK = 0
    USAGE = 2
    """The command line is wrong."""
    BAD_MODEL = 10
    """The model file cannot be read, is truncated, or breaks its own format."""
    UNSUPPORTED_OP = 11
    """The model is sound, but uses an op, a type or an attribute that Cuvil does not compile; the message names it."""
    WRONG_NUMBERS = 12
    """The artifact's outputs leave the accuracy bound against the source model."""
    TOO_SLOW = 13
    """The artifact misses the latency bound on this machine."""
    TOO_LARGE = 14
    """A size bound (model, artifact, memory) is exceeded."""
    TIMEOUT = 15
    """The work did not end within its own time limit."""
    BAD_ARTIFACT = 16
    """The artifact is truncated, altered, or made for another contract version."""
    UNSUPPORTED_TARGET = 17
    """This compiler has no back end for the target, or this machine cannot run it."""
    DIGEST_MISMATCH = 18
    """The bytes fetched are not the bytes that the digest names."""
    NOT_FOUND = 19
    """The model, the artifact or the credentials do not exist where the spec says."""
    INFRASTRUCTURE = 20
    """Network, registry or disk failed; the same inputs may succeed later."""
    INTERNAL = 70
    """A fault of Cuvil itself."""
