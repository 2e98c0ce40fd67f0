"""Adds training jobs that several workers train together."""

from typing import Any

from alembic import op
from sqlalchemy import Column, Integer, Text, inspect

from api.records.tables import UtcDateTime, training_members

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Adds columns and table; 0013 creates its tables as they are now."""
    added: dict[str, list[Column[Any]]] = {
        "training_jobs": [Column("machines", Integer, nullable=False, server_default="1")],
        "training_workers": [Column("address", Text), Column("waits_until", UtcDateTime)],
    }
    for table, columns in added.items():
        known = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
        for column in columns:
            if column.name not in known:
                op.add_column(table, column)
    training_members.create(op.get_bind(), checkfirst=True)
