"""The log on stderr: one record a line, as JSON or as text."""

import faulthandler
import json
import logging
import warnings

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from api.http.settings import LogFormat, ServerSettings


def configure_logging(settings: ServerSettings) -> None:
    """Gives the records of the service, the server, Python's warnings and all libraries one format.

    The entry point calls it before packages configure their own logging. `uvicorn.Config` has to be given
    `log_config=None`. Libraries that write to stderr themselves, such as TensorFlow, are not reformatted.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(make_formatter(settings.log_format))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    warnings.filterwarnings("ignore", module="PIL")  # a broken image can cause thousands
    logging.getLogger("api").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").addFilter(_is_not_logged_by_us)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns about each broken form
    faulthandler.enable()


def _is_not_logged_by_us(record: logging.LogRecord) -> bool:
    """Drops uvicorn's line about invalid HTTP: `api.listener.http_protocol` logs it with client and id."""
    return record.msg != "Invalid HTTP request received."


def make_formatter(log_format: LogFormat) -> logging.Formatter:
    """Returns a formatter of records with their `extra` fields and tracebacks, as JSON or as text."""
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
    """Renders `TIME LEVEL message field=value …`; a traceback follows, indented.

    Unprintable characters are escaped, and only a traceback continues on further lines: no value can look
    like another record or field.
    """
    traceback = "\n".join(str(event.pop(part)) for part in ("exception", "stack") if part in event)
    head = (event.pop("timestamp"), event.pop("level").upper(), _printable(str(event.pop("event"))))
    fields = (f"{field}={_quoted(value)}" for field, value in event.items())
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
