"""An inspection on its way into the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[Any, Any]
"""Values by column; SQLAlchemy's own rows are of this type too."""


@dataclass(frozen=True)
class Inspection:
    """An inspection to be kept.

    Attributes:
        row: Of `tables.inspections`, as far as it is known before.
        picture: The encoded photograph.
        picture_row: Of `tables.pictures`.
    """

    row: Row
    picture: bytes
    picture_row: Row

    @property
    def sha256(self) -> bytes:
        """Of the picture."""
        digest: bytes = self.row["picture"]
        return digest


@dataclass(frozen=True)
class StoredInspection:
    """What became of an inspection.

    Attributes:
        record_id: Under which it is kept.
        first: The row of an earlier one that has one of its keys, and stands for it; None = it has its own.
    """

    record_id: int
    original: Row | None = None
