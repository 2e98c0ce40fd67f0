"""An inspection before and after it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[Any, Any]
"""Values by column name, for example a RowMapping of SQLAlchemy."""


@dataclass(frozen=True)
class Inspection:
    """An inspection to be stored.

    Attributes:
        row: Values of `tables.inspections` that are known before storing.
        picture: The encoded image file.
        picture_row: Values of `tables.pictures`.
    """

    row: Row
    picture: bytes
    picture_row: Row

    @property
    def sha256(self) -> bytes:
        """Digest of the picture."""
        digest: bytes = self.row["picture"]
        return digest


@dataclass(frozen=True)
class StoredInspection:
    """The result of storing an inspection.

    Attributes:
        record_id: Id of its row.
        original: Row of an earlier inspection that this one repeats (same key); None = it has a row of its
            own.
    """

    record_id: int
    original: Row | None = None
