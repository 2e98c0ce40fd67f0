"""Measures of photographs that are unlike those of the training."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("inspections", Column("unlike", Text))
