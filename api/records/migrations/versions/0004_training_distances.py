"""Adds the distances of a photograph to those of the training."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("inspections", Column("distances", Text))
