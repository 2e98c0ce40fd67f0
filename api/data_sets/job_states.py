"""The state of a job in the background: it ends itself, or with the service that runs it."""

from datetime import datetime, timedelta

from sqlalchemy import RowMapping

from api.data_sets.job_schemas import JobState

ALIVE_S = 60.0
"""A job that was not kept alive for so long has ended with its service."""


def job_state(row: RowMapping, now: datetime) -> JobState:
    """Returns the state of a job from the columns `state` and `alive_at` of its row."""
    state: JobState = row["state"]
    is_late = now - row["alive_at"] > timedelta(seconds=ALIVE_S)
    return "failed" if state == "running" and is_late else state
