"""What names must not be: those of stations, parts, people, models, requests and classes.

MQTT brokers close the connection at most of the forbidden characters; the others change what a reader of
logs, tables and pages sees.
"""

import re
from typing import Final

_NONCHARACTERS = "".join(f"{chr(first)}{chr(first + 1)}" for first in range(0xFFFE, 0x110000, 0x10000))
FORBIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # separators of lines; overrides of the text direction
    f"\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]"
)
SCHEMA_PATTERN = r"^[^\u0000-\u001F\u007F-\u009F\u2028-\u202E\u2066-\u2069\uFDD0-\uFDEF\uFFFE\uFFFF]*$"
"""The same for JSON schemas, whose dialects have no common notation for characters beyond U+FFFF."""

REVIEW: Final = "review"
"""Label of a photograph that a person must check."""
NOT_INSPECTED: Final = "not_inspected"
"""Stands in the record for the label of a photograph without a verdict."""
UNSURE: Final = "unsure"
"""Label of a reviewer who cannot decide."""


def is_reserved_class(name: str) -> bool:
    """Returns whether a class must not have this name, because it is a label that is not a class."""
    return name.lower() in {REVIEW, NOT_INSPECTED, UNSURE}


def is_reserved_folder(name: str) -> bool:
    """Returns whether a model must not have this name: its folder could not be made on every system, or would
    look like a file of the folder of models.
    """
    return re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*\.(json)?", name) is not None


def check_identifier(text: str) -> str:
    """Returns `text`.

    Raises:
        ValueError: If it has a forbidden character.
    """
    match = FORBIDDEN.search(text)
    if match is not None:
        raise ValueError(
            f"The character U+{ord(match[0]):04X} is not allowed. Expected text without control characters, "
            "line separators, noncharacters and overrides of the text direction"
        )
    return text
