"""`python -m cuvil_operator`: settings from the environment, then one Process until it ends.

Exit codes: 0 asked to stop; 1 the Lease, a watch or the API server was lost (start again); 2 the environment, a right
or the CRD is missing (a person must act). Both say why in one sentence.
"""

import asyncio
import logging
import os
import sys

from cuvil_operator import settings
from cuvil_operator.errors import GiveUpError, OperatorError
from cuvil_operator.lifecycle import Process


def main() -> int:
    """Run; gives the exit code."""
    try:
        found = settings.read(os.environ)
        logging.basicConfig(level=found.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s %(message)s")
        asyncio.run(_live(found))
    except (OperatorError, BaseExceptionGroup) as raised:
        fault = _first(raised)
        if not isinstance(fault, OperatorError):
            raise
        print(f"cuvil-operator: {fault}", file=sys.stderr, flush=True)
        return 2 if isinstance(fault, GiveUpError) else 1
    return 0


async def _live(found: settings.Settings) -> None:
    await Process(found).run()


def _first(fault: BaseException) -> BaseException:
    """Give the first leaf of a tree of errors: the tasks of a group end together, the first one is the cause."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


if __name__ == "__main__":
    # Not sys.exit: kopf's thread must not hold up the end.
    code = main()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)
