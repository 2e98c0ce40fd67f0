"""Adds the table of deleted data sets and indexes of files; triggers let a whole data set be deleted."""

from alembic import op

from api.records.append_only import (
    ANNOTATIONS_DELETION,
    VERSIONS_DELETION,
    create_triggers,
    drop_triggers,
)
from api.records.tables import (
    data_set_annotations,
    data_set_photographs,
    data_set_versions,
    deleted_data_sets,
)

revision = "0022"
down_revision = "0021"
INDEXES = {"data_set_photographs_by_file", "data_set_photographs_by_mask", "data_set_versions_by_file"}


def upgrade() -> None:
    """Adds table and indexes, and replaces the triggers; 0011 creates its tables as they are now."""
    connection = op.get_bind()
    deleted_data_sets.create(connection, checkfirst=True)
    for index in (*data_set_photographs.indexes, *data_set_versions.indexes):
        if index.name in INDEXES:
            index.create(connection, checkfirst=True)
    for table, (name, deletable) in (
        (data_set_annotations, ANNOTATIONS_DELETION),
        (data_set_versions, VERSIONS_DELETION),
    ):
        drop_triggers(connection, table.name)
        create_triggers(connection, table.name, name, deletable)
