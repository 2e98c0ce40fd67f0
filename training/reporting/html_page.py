"""HTML pages that need nothing beside them: templates, one style, scripts named by their digest."""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from segdec.imaging.overlay import PREDICTED, TRUTH
from training.formatting import format_count, format_figure, format_interval, format_score

TEMPLATES = Path(__file__).parent / "templates"

ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""Signs that could end a script element or a line of it; within JSON they stand in strings alone."""


def render(template: str, **content: Any) -> str:
    """Fills a template; everything but markup made here is escaped."""
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
    environment.filters["count"] = format_count
    environment.filters["interval"] = format_interval
    environment.globals["predicted_color"] = f"rgb{PREDICTED}"
    environment.globals["truth_color"] = f"rgb{TRUTH}"
    environment.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    return environment


def read_script(name: str) -> tuple[Markup, str]:
    """Returns a script of the templates, and how the content security policy names it."""
    # As it stands in the page: the browser digests everything between the tags.
    text = "\n" + (TEMPLATES / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return Markup(text), f"'sha256-{digest}'"


def embed_json(value: Any) -> Markup:
    """Returns JSON for a script element: whatever names hold, it ends neither the element nor a string."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(ESCAPES))
