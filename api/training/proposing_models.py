"""The models that can propose labels for a data set, and the one that does."""

from sqlalchemy import RowMapping

from api.data_sets.job_schemas import ProposingModelChoice
from api.data_sets.proposing_model import ProposingModel, ServedProposer
from api.errors import RequestError
from api.inspecting.service import InspectionService
from api.training.result_model import find_done_job, find_model_digest, list_done_jobs
from api.training.schemas import AskedProposals
from api.training.trained_proposer import TrainedProposer
from api.training.training_store import TrainingStore
from segdec.artifact import STABLE

MAX_TRAINED = 50
"""Trainings of a data set whose models are offered: the newest ones."""


async def choose_model(
    service: InspectionService, training: TrainingStore, data_set_id: int, asked: AskedProposals
) -> ProposingModel:
    """Returns the model that proposes: the one that is asked for, else that of the newest finished training
    of the data set, else the default one.

    Raises:
        RequestError: 400 if a training and a served model are named, 404 if there is no such model or job,
            409 if the job is not done.
    """
    is_named = asked.model is not None or asked.version is not None
    job_id = asked.training_job
    if job_id is not None and is_named:
        detail = "A served model and a training are named. Expected 'training_job' alone, or the other two."
        raise RequestError(400, "two_models", detail)
    if job_id is None and not is_named:
        job_id = next((row["id"] for row in await training.read(list_done_jobs, data_set_id, 1)), None)
    if job_id is None:
        return ServedProposer(service.models, service.find_model(asked.model, asked.version).identity)
    return await _find_trained(service, training, await training.read(find_done_job, job_id))


async def _find_trained(
    service: InspectionService, training: TrainingStore, row: RowMapping
) -> ProposingModel:
    """Returns the model of a job; one that is served already is not loaded again."""
    served = service.models.versions(row["model"]).get(row["version"])
    if served is not None and served.identity.sha256 == await find_model_digest(training, row["id"]):
        return ServedProposer(service.models, served.identity)
    if service.loader is None:
        detail = "The service has one model in memory and loads no others. Start it with --models FOLDER."
        raise RequestError(409, "models_fixed", detail)
    return TrainedProposer(training, row, service.loader)


async def list_choices(
    service: InspectionService, training: TrainingStore, data_set_id: int
) -> list[ProposingModelChoice]:
    """Returns the models that can propose: those of finished trainings of the data set, the newest first,
    then the served ones, the default first. The first of all proposes if none is named.

    Raises:
        RequestError: 404 if the data set does not exist, 503 while the service starts.
    """
    service.check_state()
    trained = [
        ProposingModelChoice(
            model=row["model"],
            version=row["version"],
            training_job=row["id"],
            ended_at=row["ended_at"],
            aliases=_aliases_of(service, row),
        )
        for row in await training.read(list_done_jobs, data_set_id, MAX_TRAINED)
    ]
    known = {(choice.model, choice.version) for choice in trained if choice.aliases}
    served = [
        model for model in service.models.all() if (model.identity.name, model.identity.version) not in known
    ]
    served.sort(
        key=lambda model: (model.identity.name != service.models.default, STABLE not in model.aliases)
    )
    others = [
        ProposingModelChoice(
            model=model.identity.name,
            version=model.identity.version,
            training_job=None,
            ended_at=None,
            aliases=list(model.aliases),
        )
        for model in served
    ]
    return [*trained, *others]


def _aliases_of(service: InspectionService, row: RowMapping) -> list[str]:
    """Returns the aliases of the served version that a job was put into use as; empty if it is not served."""
    served = service.models.versions(row["model"]).get(row["version"])
    return [] if row["used"] is None or served is None else list(served.aliases)
