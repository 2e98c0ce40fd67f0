"""Adds the order of proposals that compares photographs with each other."""

from alembic import op
from sqlalchemy import Column, Double, inspect

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Adds the ranks; 0017 creates the table as it is now, so a new database has them already.

    Proposals of earlier versions stay in their order, apart from uncertain ones that are far from the
    threshold: photographs unlike the training come first, then the nearest to the threshold.
    """
    known = {column["name"] for column in inspect(op.get_bind()).get_columns("data_set_proposals")}
    if "rank" not in known:
        op.add_column("data_set_proposals", Column("rank", Double, nullable=False, server_default="0"))
        op.execute(
            "UPDATE data_set_proposals SET rank = distance "
            "WHERE reason <> 'unlike_training' AND distance IS NOT NULL"
        )
    op.execute("DROP INDEX IF EXISTS data_set_proposals_by_reason")
    op.execute(
        "CREATE INDEX IF NOT EXISTS data_set_proposals_by_rank "
        "ON data_set_proposals (data_set_id, rank, photograph_id)"
    )
