import json
import logging
import subprocess
import sys
from typing import Any, Literal

import pytest

from api.logs import make_formatter


def render(log_format: Literal["text", "json"], message: str, *arguments: object, **words: Any) -> str:
    """What the log says of one record."""
    name, exc_info = "api.http.middleware.access", words.pop("exc_info", None)
    place = (name, logging.INFO, "file.py", 1)
    record = logging.getLogger(name).makeRecord(*place, message, arguments, exc_info, extra=words)
    return make_formatter(log_format).format(record)


def failure() -> Any:
    try:
        raise RuntimeError("first\n2026-01-01 ERROR forged")
    except RuntimeError:
        return sys.exc_info()


def test_json_holds_message_and_fields():
    record = json.loads(render("json", "took %d ms", 3, path="/v1/predict", status=200, score=0.25))
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "took 3 ms",
        "level": "info",
        "logger": "api.http.middleware.access",
        "path": "/v1/predict",
        "status": 200,
        "score": 0.25,
    }


def test_text_is_one_line_with_its_fields():
    line = render("text", "request", path="/v1/predict", status=200, key="line-1")
    time, rest = line.split(" ", 1)
    assert time.endswith("Z")
    assert rest == "INFO request path=/v1/predict status=200 key=line-1 logger=api.http.middleware.access"


@pytest.mark.parametrize("sign", ["\n", "\x1b", "\x85", "\u2028", "\ud800"])
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_values_cannot_start_a_line(log_format, sign):
    line = render(log_format, f"a{sign}b", path=f"/x{sign}2026 ERROR forged")
    assert sign not in line
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize("value", ["/x status=200", 'a"b', ""])
def test_values_cannot_add_a_field(value):
    line = render("text", "request", path=value)
    quoted, end = json.JSONDecoder().raw_decode(line.split(" path=")[1])
    assert (quoted, line.split(" path=")[1][end:]) == (value, " logger=api.http.middleware.access")


def test_traceback_is_indented_in_text_and_one_line_in_json():
    line = render("json", "failed", exc_info=failure())
    assert "\n" not in line
    assert "RuntimeError: first" in json.loads(line)["exception"]
    lines = render("text", "failed", exc_info=failure()).split("\n")
    assert len(lines) > 3
    assert all(line.startswith("    ") for line in lines[1:])
    assert "    2026-01-01 ERROR forged" in lines


def test_records_of_all_libraries_are_json_on_stderr():
    code = """
import logging, warnings
from api.logs import configure_logging
from api.settings import Settings
configure_logging(Settings.model_validate({"model": "unused", "log_format": "json"}))
import uvicorn
uvicorn.Config(None, log_config=None, access_log=False)
logging.getLogger("uvicorn.error").info("hidden")
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")  # ours says it with an id
logging.getLogger("uvicorn.error").warning("from the server", extra={"color_message": "again"})
logging.getLogger("api.models.registry").info("from the service")
warnings.warn("from Python", stacklevel=1)
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("asyncio").exception("from a library")
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], check=True, capture_output=True)
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.stdout == b""
    assert [(record["logger"], record["level"]) for record in records] == [
        ("uvicorn.error", "warning"),
        ("api.models.registry", "info"),
        ("py.warnings", "warning"),
        ("asyncio", "error"),
    ]
    assert "from Python" in records[2]["event"]
    assert "ZeroDivisionError" in records[3]["exception"]
    assert not any("color_message" in record for record in records)
