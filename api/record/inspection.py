"""An inspection before and after it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[Any, Any]
"""Values by column name, for example a RowMapping of SQLAlchemy."""


@dataclass(frozen=True)
class NewInspection:
    """An inspection to be stored: its row without id, the encoded image file, and the row of `pictures`."""

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
    """The id of a stored inspection.

    Attributes:
        original: The earlier row that it repeats, or whose Idempotency-Key it has.
        differences: What the request has in another way than the earlier one with its Idempotency-Key.
    """

    record_id: int
    original: Row | None = None
    differences: tuple[str, ...] = ()
