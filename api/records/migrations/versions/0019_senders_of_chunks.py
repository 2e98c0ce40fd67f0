"""Adds which key sent a chunk of a training, and which key has a training job."""

from alembic import op
from sqlalchemy import Column, Text, inspect

from api.records.tables import training_chunks

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Adds the columns; 0013 creates the tables as they are now, so a new database has them already."""
    connection = op.get_bind()
    for table, name in (("training_chunks", "sent_by"), ("training_jobs", "worker_key")):
        if name not in {column["name"] for column in inspect(connection).get_columns(table)}:
            op.add_column(table, Column(name, Text))
    next(index for index in training_chunks.indexes if index.name == "training_chunks_by_sender").create(
        connection, checkfirst=True
    )
