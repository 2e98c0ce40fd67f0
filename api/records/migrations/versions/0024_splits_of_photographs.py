"""Adds the split that photographs of data sets came with."""

from alembic import op
from sqlalchemy import Column, Text, inspect

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Adds the column; 0011 creates the table as it is now."""
    known = {column["name"] for column in inspect(op.get_bind()).get_columns("data_set_photographs")}
    if "split" not in known:
        op.add_column("data_set_photographs", Column("split", Text))
