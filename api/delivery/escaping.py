"""Names of stations as one level of a path that other systems parse."""

import re
from urllib.parse import quote

from segdec.runtime.identifiers import FORBIDDEN


def escape_name(name: str, reserved: str) -> str:
    """Percent-encodes `%`, the characters `reserved`, and those that names must not have.

    Different names stay different; `urllib.parse.unquote` decodes them. Records of earlier versions may have
    any character.
    """
    escaped = re.compile(f"[%{re.escape(reserved)}]|{FORBIDDEN.pattern}")
    return escaped.sub(lambda match: quote(match[0], safe="", errors="surrogatepass"), name)
