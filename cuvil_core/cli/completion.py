"""`cuvil completion`: scripts for shells, made from the parser itself."""

import argparse

from cuvil_core.cli.arguments import build_parser
from cuvil_core.cli.console import Console, Result
from cuvil_core.errors import MissingError


def completion_command(given: argparse.Namespace, console: Console) -> Result:
    """Print a completion script, for instance `eval "$(cuvil completion bash)"`."""
    try:
        import shtab
    except ImportError as fault:
        raise MissingError("shtab is not installed here; pip install shtab") from fault
    script = str(shtab.complete(build_parser(), given.shell))
    return Result(script, {"shell": given.shell, "script": script})
