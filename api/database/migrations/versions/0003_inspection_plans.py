"""Inspection plans that decide about photographs."""

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for column in (
        Column("model_label", Text),
        Column("plan", Text),
        Column("plan_version", Integer),
        Column("plan_sha256", Text),
        Column("plan_severity", Text),
        Column("plan_finding", Text),
    ):
        op.add_column("inspections", column)
