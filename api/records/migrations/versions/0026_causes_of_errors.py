"""Adds the causes of errors in the results of jobs, for their texts in other languages."""

from alembic import op
from sqlalchemy import Column, Text, inspect

revision = "0026"
down_revision = "0025"

ADDED = {
    "data_set_checks": ("error_cause",),
    "data_set_proposal_runs": ("problem_cause", "error_cause"),
    "proposal_orders": ("error_cause",),
    "training_workers": ("problem_cause",),
}


def upgrade() -> None:
    """Adds the columns; earlier migrations create their tables as they are now."""
    for table, names in ADDED.items():
        known = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
        for name in names:
            if name not in known:
                op.add_column(table, Column(name, Text))
