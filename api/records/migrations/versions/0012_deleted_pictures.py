"""Adds when and by whom a picture was deleted."""

from alembic import op
from sqlalchemy import Column, Text

from api.records.tables import UtcDateTime

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Adds the columns; they are empty for pictures that were deleted before."""
    op.add_column("pictures", Column("deleted_at", UtcDateTime))
    op.add_column("pictures", Column("deleted_by", Text))
