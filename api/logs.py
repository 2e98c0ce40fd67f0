"""The log on stderr: one record a line, as JSON or as text, whoever wrote it."""

import faulthandler
import logging
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from api import log_lines
from api.log_lines import LogFormat, render_text
from api.settings import Settings

STDERR = 2
END_S = 1.0
"""Seconds that the last lines written past the log may take at the end."""


def configure_logging(settings: Settings) -> None:
    """Sends the records of the service, the server, Python's warnings and all libraries through one form.

    For the entry point, before other packages set up their own. `uvicorn.Config` has to be given
    `log_config=None`.
    """
    relayed = relay_stderr(settings.log_format)
    handler = RelayedHandler(*relayed) if relayed else logging.StreamHandler()
    handler.setFormatter(make_formatter(settings.log_format))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    warnings.filterwarnings("ignore", module="PIL")  # a broken picture can bring thousands
    logging.getLogger("api").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").addFilter(_is_not_told_twice)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of each broken form


def relay_stderr(log_format: LogFormat) -> "tuple[TextIO, subprocess.Popen[bytes]] | None":
    """Makes records of all that is written to stderr from now on, by `api.log_lines` as a second process.

    Decoders and TensorFlow write there without Python, so the descriptor itself leads to that process. Only
    a crash's traceback goes past it, as plain text: nobody may be left to pass it on.

    Returns:
        What the log is written to, stderr as it was, and the second process; None if there is no stderr.
    """
    if sys.stderr is None:
        return None
    sys.stderr.flush()
    log = os.fdopen(os.dup(STDERR), "w", encoding="utf-8", errors="backslashreplace")
    command = [sys.executable, "-I", "-S", log_lines.__file__, log_format]
    lines, written = os.pipe()
    relay = subprocess.Popen(command, stdin=lines, stdout=subprocess.DEVNULL, start_new_session=True)
    os.dup2(written, STDERR)
    os.close(lines)
    os.close(written)
    faulthandler.enable(log)
    return log, relay


class RelayedHandler(logging.StreamHandler[TextIO]):
    """Writes the log; closed, it waits for the second process that writes there too.

    `logging.shutdown` closes it: at the interpreter's end, or called by who leaves without one.
    """

    def __init__(self, log: TextIO, relay: "subprocess.Popen[bytes]") -> None:
        super().__init__(log)
        self._relay = relay

    def close(self) -> None:
        """Waits until everything is written; a child of ours that goes on writing is not waited for."""
        super().close()
        sys.stderr.flush()
        os.dup2(self.stream.fileno(), STDERR)
        with suppress(subprocess.TimeoutExpired):
            self._relay.wait(END_S)


def _is_not_told_twice(record: logging.LogRecord) -> bool:
    """Drops uvicorn's line on what is no HTTP: `api.listener.http_protocol` says the same, of whom and with an id."""
    return record.msg != "Invalid HTTP request received."


def make_formatter(log_format: LogFormat) -> logging.Formatter:
    """Renders a record with its `extra` fields, and its traceback if it has one, as JSON or as text."""
    shared: list[Processor] = [
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        _drop_colors,
    ]
    renderer: Processor = structlog.processors.JSONRenderer() if log_format == "json" else _render_text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _drop_colors(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:  # noqa: ARG001
    event.pop("color_message", None)  # uvicorn's copy of its message for terminals
    return event


def _render_text(logger: WrappedLogger, name: str, event: EventDict) -> str:  # noqa: ARG001
    return render_text(event)
