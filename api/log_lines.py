"""A record of the log as one line; run as a program, records of what others wrote to stderr.

    python -I -S api/log_lines.py text|json < LINES

The program stands beside the service, which sends it whatever is written past its log: by decoders, by
TensorFlow, by the interpreter. As a process of its own it needs no lock of the service's, so that a full pipe
never holds anybody up for good, and it passes on the last words of one that crashes. It imports the standard
library alone, to start at once and to stay small.
"""

import json
import signal
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal

LogFormat = Literal["text", "json"]

LOGGER = "stderr"
"""Name of the logger in records of lines that were written past the log."""

ERROR = "error: "
"""How a line begins that says why a command ends; see `segdec.runtime.cli.clean_exit`."""

LONGEST = 2**16
"""Bytes of a line; a longer one becomes several records."""


def main() -> None:
    """Writes a record to stderr for each line on stdin, until its last writer has gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever stops the service may have words to say
    relay(sys.stdin.buffer, sys.stderr.buffer, "json" if sys.argv[1:] == ["json"] else "text")


def relay(lines: BinaryIO, log: BinaryIO, log_format: LogFormat) -> None:
    """Writes a record to `log` for each of `lines` that is not empty."""
    while line := lines.readline(LONGEST):
        event = line.decode(errors="backslashreplace").rstrip("\r\n")
        if event.strip():
            log.write(f"{render_line(event, log_format)}\n".encode())
            log.flush()


def render_line(event: str, log_format: LogFormat) -> str:
    """Renders a line that was written past the log, as `api.logs` renders records."""
    record = {
        "event": event.removeprefix(ERROR),
        "level": "error" if event.startswith(ERROR) else "warning",
        "logger": LOGGER,
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    return json.dumps(record) if log_format == "json" else render_text(record)


def render_text(record: MutableMapping[str, Any]) -> str:
    """Renders `TIME LEVEL message field=value …`; a traceback follows, indented.

    What does not print is escaped and only a traceback goes on in a further line, always indented: no value
    can look like a record or a field of its own.
    """
    traceback = "\n".join(str(record.pop(part)) for part in ("exception", "stack") if part in record)
    head = (record.pop("timestamp"), record.pop("level").upper(), _printable(str(record.pop("event"))))
    fields = (f"{field}={_quoted(value)}" for field, value in record.items())
    lines = [" ".join((*head, *fields)), *(f"    {_printable(line)}" for line in traceback.splitlines())]
    return "\n".join(lines)


def _quoted(value: object) -> str:
    text = _printable(str(value))
    plain = text and not any(sign in text for sign in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


if __name__ == "__main__":
    main()
