"""A kind of jobs for tests, and a record without a service."""

import asyncio

from api.database.database import write_transaction
from api.jobs.job_kind import JobKind
from api.jobs.schemas import JobAnswer
from api.jobs.stored_jobs import start_job
from api.messages.causes import Cause, Failure
from segdec.schemas import AnswerPart


class Steps(AnswerPart):
    done: int = 0


class TrialAnswer(JobAnswer, Steps):
    pass


TRIAL = JobKind("trial", TrialAnswer, Failure("It was stopped.", Cause(code="stopped")), queue="trials")


class TrialJob:
    """A job that does one step, and then awaits `work`."""

    def __init__(self, data_set_id, work, kind=TRIAL):
        self.kind, self._data_set_id, self._work, self.progress = kind, data_set_id, work, Steps()

    def start_row(self, connection, now):
        return start_job(connection, self.kind, self._data_set_id, self.progress, "Ada", now)

    async def run(self):
        self.progress = Steps(done=1)
        await self._work()


class LocalRecord:
    """Has the methods of `Record` that jobs use."""

    def __init__(self, engine):
        self.engine = engine

    def change(self, change, *args):
        with write_transaction(self.engine) as connection:
            return change(connection, *args)

    def query(self, query, *args):
        with self.engine.connect() as connection:
            return query(connection, *args)

    async def write(self, change, *args):
        return await asyncio.to_thread(self.change, change, *args)
