"""Starts a run that proposes labels for the photographs of a data set."""

from dataclasses import dataclass

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.proposal_job import ProposalJob
from api.data_sets.proposals import PROPOSAL_JOBS, list_unlabelled
from api.data_sets.proposing_model import ProposingModel
from api.errors import RequestError
from api.inspecting.background_inspector import BackgroundInspector
from api.jobs.runner import JobRunner


@dataclass(frozen=True)
class ProposalStarter:
    """Starts jobs in which a model proposes labels."""

    data_sets: DataSetStore
    jobs: JobRunner
    inspector: BackgroundInspector

    async def start(self, data_set_id: int, model: ProposingModel, who: str) -> int:
        """Runs a model on all photographs without a label, in the background; replaces earlier proposals.

        Returns the id of the job.

        Raises:
            RequestError: 404 if the data set does not exist, 409 if it has no classes, no photograph without
                a label or a run in progress, 503 if too many jobs wait or the record cannot be used now.
        """
        classes = classes_of(await self.data_sets.read(find_data_set, data_set_id))
        waiting = await self.data_sets.read(list_unlabelled, data_set_id)
        if not classes:
            detail = "The data set has no classes of defects. Add one first: a proposal needs it."
            raise RequestError(409, "no_classes", detail)
        if not waiting:
            raise RequestError(409, "nothing_unlabelled", "All photographs of the data set are labelled.")
        async with self.jobs.open_folder(PROPOSAL_JOBS) as folder:
            job = ProposalJob(
                self.data_sets, data_set_id, classes, waiting, self.inspector, model, folder.path, who
            )
            return await self.jobs.start(folder, job)
