"""Self-contained HTML pages: templates, one style sheet, scripts allowed by their digest."""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from segdec.imaging.overlay import PREDICTED, TRUTH
from training.formatting import format_figure, format_score
from training.metrics.intervals import Interval

TEMPLATES = Path(__file__).parent / "templates"

ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""Characters that could end a script element or one of its lines; in JSON they occur only inside strings."""


def render(template: str, **content: Any) -> str:
    """Renders a template; everything except `Markup` is escaped."""
    return _environment().get_template(template).render(content)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["score"] = format_score
    environment.filters["figure"] = format_figure
    environment.filters["interval"] = format_interval
    environment.globals["predicted_color"] = f"rgb{PREDICTED}"
    environment.globals["truth_color"] = f"rgb{TRUTH}"
    environment.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    return environment


def format_interval(interval: Interval | None) -> str:
    """Formats both ends with two decimals; values below 1 are never rounded up to 1; empty for None."""
    if interval is None:
        return ""
    low, high = (int(end * 100) / 100 if end > 0.99 else end for end in (interval.low, interval.high))
    return f"({low:.2f}–{high:.2f})"


def read_script(name: str) -> tuple[Markup, str]:
    """Returns a script of the templates, and its source expression for the content security policy."""
    # With the newline of the page: the browser hashes everything between the tags.
    text = "\n" + (TEMPLATES / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return Markup(text), f"'sha256-{digest}'"


def embed_json(value: Any) -> Markup:
    """Returns JSON for a script element; no string in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(ESCAPES))
