"""Trains a model on the labels of a data set, and lets it propose those of the rest when it is done."""

import asyncio
import logging
import re
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Connection, RowMapping

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import find_data_set
from api.data_sets.proposal_start import ProposalStarter
from api.data_sets.proposals import PROPOSAL_JOBS, show_run
from api.data_sets.versions import create_version, take_snapshot
from api.errors import RequestError
from api.inspecting.service import InspectionService
from api.messages.causes import Cause, Failure, failure_columns
from api.training.jobs import is_model_name
from api.training.proposal_orders import change_order, check_labels, create_order, find_newest_model, list_due
from api.training.proposing_models import choose_model
from api.training.schemas import AskedProposals, NewTrainingJob
from api.training.training_store import TrainingStore
from segdec.errors import SegdecError

INTERVAL_S = 2.0
"""Seconds between two checks for trainings that are done."""
MAX_STARTS = 5
"""Runs of one order: each stop of the service ends one. A model may be the reason why it stops."""
MAX_NAME = 64
"""Characters in the name of a model that is made from that of a data set."""
logger = logging.getLogger(__name__)


async def train_and_propose(
    service: InspectionService,
    data_sets: DataSetStore,
    training: TrainingStore,
    data_set_id: int,
    minutes: float,
    who: str,
) -> None:
    """Makes a version of a data set and orders a training, after which labels of the rest are proposed.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if it has too few labels, or none is missing, or
            such a training waits or runs.
    """
    await data_sets.read(check_labels, data_set_id)
    name = await data_sets.read(_name_model, data_set_id)
    used = await training.run_in_thread(partial(service.stored_versions, name))
    snapshot, now = await data_sets.read(take_snapshot, data_set_id), datetime.now(UTC)
    files = [snapshot.manifest]
    number = await data_sets.write(create_version, data_set_id, snapshot, "", who, now, files=files)
    new = NewTrainingJob(data_set=data_set_id, data_set_version=number, model=name, minutes=minutes)
    await training.write(create_order, new, used, who, now)


def _name_model(connection: Connection, data_set_id: int) -> str:
    """Returns the name of the model: that of the data set's last training, else one made from its name."""
    name = find_data_set(connection, data_set_id)["name"]
    made = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")[:MAX_NAME].strip("_")
    names = find_newest_model(connection, data_set_id) or made, made
    return next(filter(is_model_name, names), "parts")


class ProposalsAfterTraining:
    """Starts the proposals of trainings that are done, and again those that a stop has interrupted."""

    def __init__(self, service: InspectionService, training: TrainingStore, starter: ProposalStarter) -> None:
        self._service, self._training, self._starter = service, training, starter

    async def run(self) -> None:
        """Starts proposals until it is cancelled."""
        while True:
            if self._service.ready and self._service.recording.is_usable:
                try:
                    await self.start_due()
                except (SegdecError, OSError) as error:
                    logger.warning("Proposals after trainings are started later: %s", error)
            await asyncio.sleep(INTERVAL_S)

    async def start_due(self) -> None:
        """Starts all proposals that are due.

        Raises:
            RequestError: 503 if the record cannot be used now, or too many jobs wait.
            OSError: If the folder of jobs cannot be written.
        """
        for order in await self._training.read(list_due):
            if order["state"] == "waiting" or await self._is_interrupted(order):
                await self._start(order)

    async def _is_interrupted(self, order: RowMapping) -> bool:
        """Returns whether the run of an order must be repeated; another end of it ends the order."""
        try:
            run = await self._training.read(show_run, order["data_set_id"], datetime.now(UTC))
        except RequestError as error:
            if error.status != 404:
                raise
            run = None
        if run is not None and run.id == order["run_id"]:
            if run.state == "running":
                return False
            if run.error_cause == PROPOSAL_JOBS.interrupted.cause:
                return True
        await self._training.write(_change, order["job_id"], "ended", None)
        return False

    async def _start(self, order: RowMapping) -> None:
        job_id, data_set_id, who = order["job_id"], order["data_set_id"], order["ordered_by"]
        if order["starts"] >= MAX_STARTS:
            text = f"The service was stopped {MAX_STARTS} times while it proposed labels. Start it again."
            failure = Failure(text, Cause(code="proposals_stopped", values={"times": MAX_STARTS}))
            await self._training.write(_change, job_id, "failed", failure)
            return
        try:
            asked = AskedProposals(training_job=job_id)
            model = await choose_model(self._service, self._training, data_set_id, asked)
            run_id = await self._starter.start(data_set_id, model, who)
        except RequestError as error:
            if error.status == 503:
                raise
            if error.code != "job_running":  # then it is started after that run
                await self._training.write(_change, job_id, "failed", Failure.of(error))
        else:
            await self._training.write(_note_start, order, run_id)


def _change(connection: Connection, job_id: int, state: str, failure: Failure | None) -> None:
    change_order(connection, job_id, state=state, **failure_columns(failure))


def _note_start(connection: Connection, order: RowMapping, run_id: int) -> None:
    starts = order["starts"] + 1
    change_order(connection, order["job_id"], state="started", starts=starts, run_id=run_id)
