"""`cuvil cache`: what is kept, and less of it."""

import argparse
from dataclasses import asdict
from datetime import datetime

from cuvil_core.cache import Cache
from cuvil_core.cli.console import Console, Result, size_text


def cache_command(given: argparse.Namespace, console: Console) -> Result:
    """List entries, remove the oldest over the bound, remove all, or say where the cache lies."""
    cache = Cache()
    if given.action == "path":
        return Result(str(cache.folder), {"path": str(cache.folder)})
    if given.action == "list":
        entries = cache.entries()
        lines = [
            f"{entry.key[:12]}  {size_text(entry.size):>10}  {datetime.fromtimestamp(entry.used):%Y-%m-%d %H:%M}  "
            f"{entry.name} ({entry.target}, {entry.precision}, compiler {entry.compiler})"
            for entry in entries
        ]
        total = f"{len(entries)} entries, {size_text(sum(entry.size for entry in entries))} in {cache.folder}"
        return Result("\n".join([*lines, total]), {"entries": [asdict(entry) for entry in entries]})
    freed = cache.collect(0 if given.action == "clear" else None)
    return Result(f"freed {size_text(freed)} in {cache.folder}", {"freed": freed})
