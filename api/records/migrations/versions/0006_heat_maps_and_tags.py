"""Adds heat maps, searchable metadata and an index of reviewers."""

from alembic import op
from sqlalchemy import Column, LargeBinary, text

from api.records.tables import tags
from api.records.tagging import add_missing_tags

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds column, index and table, and fills the table."""
    op.add_column("inspections", Column("heat_map", LargeBinary))
    reviewed = text("reviewer IS NOT NULL")
    op.create_index(
        "inspections_by_reviewer",
        "inspections",
        ["reviewer", "id"],
        sqlite_where=reviewed,
        postgresql_where=reviewed,
    )
    tags.create(op.get_bind())
    add_missing_tags(op.get_bind())
