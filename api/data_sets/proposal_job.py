"""Proposes labels for the photographs of a data set that have none, with a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.job_schemas import JobState
from api.data_sets.labelling_order import describe_photograph, order_photographs
from api.data_sets.proposals import (
    INTERRUPTED,
    ListedPhotograph,
    add_proposal,
    finish_run,
    keep_run_alive,
    leave_out,
    list_labelled,
    order_proposals,
    start_run,
)
from api.data_sets.proposed_labels import NewProposal, make_proposal
from api.data_sets.proposing_model import FindModel, ProposingModel
from api.errors import RequestError
from api.inspecting.background_inspector import BackgroundInspector
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.messages.causes import Cause, Failure
from api.models.registry import ServedModel
from segdec.errors import ImageError
from segdec.photograph_check import Vector

UNUSABLE = (404, 413)
"""Statuses of errors that concern one photograph: its file is lost, or it is too large."""

MAX_LABELLED = 500
"""Labelled photographs with which the others are compared; each must be decoded."""


class ProposalJob:
    """One run.

    Attributes:
        interrupted: For the user if the service ends before the run.
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
        photographs: Sequence[ListedPhotograph],
        inspector: BackgroundInspector,
        model: ProposingModel,
        folder: Path,
        who: str,
    ) -> None:
        self._store, self._data_set_id, self._classes = store, data_set_id, classes
        self._photographs, self._inspector, self._who = photographs, inspector, who
        self._model, self._folder = model, folder
        self.started_at = datetime.now(UTC)
        self._ids: list[int] = []
        self._proposals: list[NewProposal] = []
        self._descriptions: list[Vector] = []

    async def run(self) -> None:
        """Inspects one photograph after the other, stores each proposal, and orders them at the end.

        Raises:
            SegdecError: If the model cannot be used.
            RequestError: 409 if the model is not served any more, or another run was started; 503 if the
                record cannot be used now.
        """
        async with self._model.opened(self._folder) as find_model:
            for photograph in self._photographs:
                await self._add(photograph, find_model)
            if self._ids:
                await self._order(await self._describe_labelled(find_model))

    async def _add(self, photograph: ListedPhotograph, find_model: FindModel) -> None:
        try:
            proposal = await self._propose(photograph, find_model())
        except (ImageError, RequestError) as error:
            _check_unusable(error)
            await self._leave_out(photograph, error)
        else:
            now = datetime.now(UTC)
            await self._store.write(
                add_proposal, self._data_set_id, self.started_at, photograph.id, proposal, now
            )

    async def _propose(self, photograph: ListedPhotograph, model: ServedModel) -> NewProposal:
        data = await self._store.read_file(photograph.sha256)
        result = await self._inspector.inspect(model, EncodedPhotograph(data, photograph.name))
        proposal = await asyncio.to_thread(make_proposal, result, model.config, self._classes)
        self._ids.append(photograph.id)
        self._proposals.append(replace(proposal, mask=None))
        self._descriptions.append(describe_photograph(result.measured))
        return proposal

    async def _describe_labelled(self, find_model: FindModel) -> list[Vector]:
        found = []
        for photograph in await self._store.read(list_labelled, self._data_set_id, MAX_LABELLED):
            try:
                data = await self._store.read_file(photograph.sha256)
                measured = await self._inspector.measure(
                    find_model(), EncodedPhotograph(data, photograph.name)
                )
            except (ImageError, RequestError) as error:
                _check_unusable(error)
            else:
                found.append(describe_photograph(measured))
        return found

    async def _order(self, labelled: Sequence[Vector]) -> None:
        certainties = [proposal.certainty for proposal in self._proposals]
        order = await asyncio.to_thread(order_photographs, certainties, self._descriptions, labelled)
        sure = [proposal.reason == "sure" for proposal in self._proposals]
        # As many first places as there are useful photographs: a sure one among them has displaced one.
        different = [self._ids[one] for one in order[: sure.count(False)] if sure[one]]
        ids = [self._ids[one] for one in order]
        now = datetime.now(UTC)
        await self._store.write(order_proposals, self._data_set_id, self.started_at, ids, different, now)

    async def _leave_out(self, photograph: ListedPhotograph, error: ImageError | RequestError) -> None:
        values = {"name": photograph.name, "detail": str(error)}
        problem = Failure(f"{photograph.name}: {error}", Cause(code=error.code, values=values))
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
        self, connection: Connection, number: int, state: JobState, failure: Failure | None, now: datetime
    ) -> None:
        """States the end of the run."""
        finish_run(connection, number, self.started_at, state, failure, now)


def _check_unusable(error: ImageError | RequestError) -> None:
    """Raises an error that does not concern a single photograph."""
    if isinstance(error, RequestError) and error.status not in UNUSABLE:
        raise error
