"""Adds training jobs with their events, workers and files."""

from alembic import op

from api.records.tables import (
    training_chunks,
    training_events,
    training_files,
    training_jobs,
    training_workers,
)

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Adds the tables."""
    for table in (training_jobs, training_events, training_workers, training_chunks, training_files):
        table.create(op.get_bind())
