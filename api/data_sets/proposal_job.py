"""Proposes labels for the photographs of a data set that have none, with a model."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.job_schemas import JobState
from api.data_sets.proposals import (
    INTERRUPTED,
    UnlabelledPhotograph,
    add_proposal,
    finish_run,
    keep_run_alive,
    leave_out,
    start_run,
)
from api.data_sets.proposed_labels import NewProposal, make_proposal
from api.data_sets.proposing_model import FindModel, ProposingModel
from api.errors import RequestError
from api.inspection.background_inspector import BackgroundInspector
from api.inspection.encoded_photograph import EncodedPhotograph
from api.models.registry import ServedModel
from segdec.errors import ImageError

UNUSABLE = (404, 413)
"""Statuses of errors that concern one photograph: its file is lost, or it is too large."""


class ProposalJob:
    """One run.

    Attributes:
        interrupted: Text for the user if the service ends before the run.
        started_at: Time of the start, which identifies the run; set by `start_row`.

    Args:
        store: The data sets.
        data_set_id: The data set.
        classes: Its classes of defects.
        photographs: Those without a label.
        inspector: Inspects them.
        model: Proposes.
        folder: Where the model may write files; they are removed at the end.
        who: User or key that wants the proposals.
    """

    interrupted = INTERRUPTED

    def __init__(
        self,
        store: DataSetStore,
        data_set_id: int,
        classes: Sequence[str],
        photographs: Sequence[UnlabelledPhotograph],
        inspector: BackgroundInspector,
        model: ProposingModel,
        folder: Path,
        who: str,
    ) -> None:
        self._store, self._data_set_id, self._classes = store, data_set_id, classes
        self._photographs, self._inspector, self._who = photographs, inspector, who
        self._model, self._folder = model, folder
        self.started_at = datetime.now(UTC)

    async def run(self) -> None:
        """Inspects one photograph after the other, and stores each proposal.

        Raises:
            SegdecError: If the model cannot be used.
            RequestError: 409 if the model is not served any more, or another run was started; 503 if the
                record cannot be used now.
        """
        async with self._model.opened(self._folder) as find_model:
            for photograph in self._photographs:
                await self._add(photograph, find_model)

    async def _add(self, photograph: UnlabelledPhotograph, find_model: FindModel) -> None:
        try:
            proposal = await self._propose(photograph, find_model())
        except (ImageError, RequestError) as error:
            if isinstance(error, RequestError) and error.status not in UNUSABLE:
                raise
            await self._leave_out(photograph, str(error))
        else:
            now = datetime.now(UTC)
            await self._store.write(
                add_proposal, self._data_set_id, self.started_at, photograph.id, proposal, now
            )

    async def _propose(self, photograph: UnlabelledPhotograph, model: ServedModel) -> NewProposal:
        data = await self._store.read_file(photograph.sha256)
        result = await self._inspector.inspect(model, EncodedPhotograph(data, photograph.name))
        return await asyncio.to_thread(make_proposal, result, model.config, self._classes)

    async def _leave_out(self, photograph: UnlabelledPhotograph, error: str) -> None:
        problem = f"{photograph.name}: {error}"
        await self._store.write(leave_out, self._data_set_id, self.started_at, problem, datetime.now(UTC))

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the run; raises as `start_run`."""
        self.started_at = now
        count = len(self._photographs)
        return start_run(connection, self._data_set_id, self._model.identity, count, self._who, now)

    def keep_alive(self, connection: Connection, number: int, now: datetime) -> None:
        """States that the run is in progress."""
        keep_run_alive(connection, number, self.started_at, now)

    def finish_row(
        self, connection: Connection, number: int, state: JobState, error: str | None, now: datetime
    ) -> None:
        """States the end of the run."""
        finish_run(connection, number, self.started_at, state, error, now)
