"""The state of a job in the background: it ends itself, or with the service that runs it."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, RowMapping, Table, and_

from api.data_sets.job_schemas import JobState

ALIVE_S = 60.0
"""A job that was not kept alive for so long has ended with its service."""


def job_state(row: RowMapping, now: datetime) -> JobState:
    """Returns the state of a job from the columns `state` and `alive_at` of its row.

    A job that was kept alive in the future ended before the clock was set back.
    """
    state: JobState = row["state"]
    is_silent = abs(now - row["alive_at"]) > timedelta(seconds=ALIVE_S)
    return "failed" if state == "running" and is_silent else state


def is_running(table: Table, now: datetime) -> ColumnElement[bool]:
    """True for the rows of a table of jobs whose `job_state` is `running`."""
    alive = timedelta(seconds=ALIVE_S)
    return and_(table.c.state == "running", table.c.alive_at.between(now - alive, now + alive))
