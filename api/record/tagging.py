"""Metadata of inspections by which they can be searched: the table `tags`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, insert

from api.record.inspection import Row
from api.record.tables import tags

MAX_TAGS = 32
"""Values of one inspection that can be searched; more are only stored."""
MAX_LENGTH = 128
"""Longest key and longest value, characters; longer ones are only stored."""


def tags_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values that can be searched: text, numbers and truth values, as text; their keys have no
    colon, which separates both in a search.
    """
    texts = (
        (key, value if isinstance(value, str) else json.dumps(value))
        for key, value in metadata.items()
        if isinstance(value, str | int | float)
    )
    short = [(key, text) for key, text in texts if 0 < len(key) <= MAX_LENGTH and 0 < len(text) <= MAX_LENGTH]
    return {key: text for key, text in short[:MAX_TAGS] if "\0" not in key + text and ":" not in key}


def split_tag(text: str) -> tuple[str, str] | None:
    """Returns key and value of the text KEY:VALUE; None if one of them is missing."""
    key, _, value = text.partition(":")
    return (key, value) if key and value else None


def add_tags(connection: Connection, rows: Iterable[Row]) -> None:
    """Adds the tags of new inspections, rows with `id` and `details`."""
    made = list(_tag_rows(rows))
    if made:
        connection.execute(insert(tags), made)


def _tag_rows(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        for key, value in tags_of(json.loads(row["details"])).items():
            yield {"key": key, "value": value, "record_id": row["id"]}
