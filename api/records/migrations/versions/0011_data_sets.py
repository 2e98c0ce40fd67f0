"""Adds data sets with their photographs, annotations and versions."""

from alembic import op

from api.records.tables import (
    data_set_annotations,
    data_set_files,
    data_set_photographs,
    data_set_versions,
    data_sets,
)

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Adds the tables."""
    for table in (
        data_sets,
        data_set_files,
        data_set_photographs,
        data_set_annotations,
        data_set_versions,
    ):
        table.create(op.get_bind())
