"""One JSON object a line on standard error, for log collectors."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("cuvil.serving")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Give time, level, message, the facts and the traceback of faults."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def set_up(level: int = logging.INFO) -> None:
    """Send all logs of the process to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def say(level: int, message: str, /, fault: BaseException | None = None, **facts: object) -> None:
    """Log one sentence with facts beside it."""
    LOGGER.log(level, message, extra={"facts": facts}, exc_info=fault)
