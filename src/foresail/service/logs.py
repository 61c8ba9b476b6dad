"""What the service says of itself, a line each: text for people, or JSON for collectors."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final, Literal

_IDS: Final = ("request_id", "job_id", "milliseconds")
"""What a message may carry beside its words (``extra``)."""


class JsonLines(logging.Formatter):
    """A JSON object a line: time, level, message, ids, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of one message."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _IDS if hasattr(record, name)}
        if record.exc_info is not None:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_standard_error(form: Literal["text", "json"]) -> None:
    """Write what the service says, from level INFO on."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else plain)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
