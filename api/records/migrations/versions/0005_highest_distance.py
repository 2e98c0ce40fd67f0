"""Adds the highest distance of a photograph to those of the training, and its index."""

from alembic import op
from sqlalchemy import Column, Double, text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the column and the index."""
    op.add_column("inspections", Column("highest_distance", Double))
    unusual = text("highest_distance >= 0.5")
    op.create_index(
        "inspections_unusual", "inspections", ["id"], sqlite_where=unusual, postgresql_where=unusual
    )
