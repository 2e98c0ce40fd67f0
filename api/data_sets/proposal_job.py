"""Proposes labels for the photographs of a data set that have none, with a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.job_schemas import ProposalProgress
from api.data_sets.labelling_order import describe_photograph, order_photographs
from api.data_sets.proposals import (
    PROPOSAL_JOBS,
    ListedPhotograph,
    add_proposal,
    list_labelled,
    order_proposals,
    start_run,
)
from api.data_sets.proposed_labels import NewProposal, make_proposal
from api.data_sets.proposing_model import FindModel, ProposingModel
from api.errors import RequestError
from api.inspecting.background_inspector import BackgroundInspector
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.jobs.stored_jobs import save_progress
from api.messages.causes import Cause, Failure
from api.models.registry import ServedModel
from segdec.errors import ImageError
from segdec.photograph_check import Vector

UNUSABLE = (404, 413)
"""Statuses of errors that concern one photograph: its file is lost, or it is too large."""

MAX_LABELLED = 500
"""Labelled photographs with which the others are compared; each must be decoded."""


@dataclass
class ProposalJob:
    """One run.

    The model may write files to `folder`; they are removed at the end.
    """

    kind = PROPOSAL_JOBS
    store: DataSetStore
    data_set_id: int
    classes: Sequence[str]
    photographs: Sequence[ListedPhotograph]
    inspector: BackgroundInspector
    model: ProposingModel
    folder: Path
    who: str

    def __post_init__(self) -> None:
        model = {"model": self.model.identity.name, "version": self.model.identity.version}
        self.progress = ProposalProgress(**model, photographs=len(self.photographs))
        self._id = 0
        """Of the row, from `start_row` on."""
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
        async with self.model.opened(self.folder) as find_model:
            for photograph in self.photographs:
                await self._add(photograph, find_model)
            if self._ids:
                await self._order(await self._describe_labelled(find_model))

    async def _add(self, photograph: ListedPhotograph, find_model: FindModel) -> None:
        try:
            proposal = await self._propose(photograph, find_model())
        except (ImageError, RequestError) as error:
            _check_unusable(error)
            values = {"name": photograph.name, "detail": str(error)}
            problem = Failure(f"{photograph.name}: {error}", Cause(code=error.code, values=values))
            self.progress = self.progress.with_problem(problem)
            await self.store.write(save_progress, self._id, self.progress, datetime.now(UTC))
        else:
            row = self.data_set_id, self._id, photograph.id, proposal, self.progress, datetime.now(UTC)
            self.progress = await self.store.write(add_proposal, *row)

    async def _propose(self, photograph: ListedPhotograph, model: ServedModel) -> NewProposal:
        data = await self.store.read_file(photograph.sha256)
        result = await self.inspector.inspect(model, EncodedPhotograph(data, photograph.name))
        proposal = await asyncio.to_thread(make_proposal, result, model.config, self.classes)
        self._ids.append(photograph.id)
        self._proposals.append(replace(proposal, mask=None))
        self._descriptions.append(describe_photograph(result.measured))
        return proposal

    async def _describe_labelled(self, find_model: FindModel) -> list[Vector]:
        descriptions = []
        for photograph in await self.store.read(list_labelled, self.data_set_id, MAX_LABELLED):
            try:
                data = await self.store.read_file(photograph.sha256)
                measured = await self.inspector.measure(
                    find_model(), EncodedPhotograph(data, photograph.name)
                )
            except (ImageError, RequestError) as error:
                _check_unusable(error)
            else:
                descriptions.append(describe_photograph(measured))
        return descriptions

    async def _order(self, labelled: Sequence[Vector]) -> None:
        certainties = [proposal.certainty for proposal in self._proposals]
        order = await asyncio.to_thread(order_photographs, certainties, self._descriptions, labelled)
        sure = [proposal.reason == "sure" for proposal in self._proposals]
        # As many first places as there are useful photographs: a sure one among them has displaced one.
        different = [self._ids[one] for one in order[: sure.count(False)] if sure[one]]
        ids = [self._ids[one] for one in order]
        await self.store.write(self._store_order, ids, different, datetime.now(UTC))

    def _store_order(
        self, connection: Connection, ids: Sequence[int], different: Sequence[int], now: datetime
    ) -> None:
        save_progress(connection, self._id, self.progress, now)
        order_proposals(connection, ids, different)

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the run; raises as `start_run`."""
        self._id = start_run(connection, self.data_set_id, self.progress, self.who, now)
        return self._id


def _check_unusable(error: ImageError | RequestError) -> None:
    """Raises an error that does not concern a single photograph."""
    if isinstance(error, RequestError) and error.status not in UNUSABLE:
        raise error
