"""Trainings that were ordered so that their models propose labels: rows of the table `proposal_orders`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, case, func, insert, select, update

from api.data_sets.definitions import find_data_set
from api.data_sets.names import IGNORE
from api.data_sets.splits import LEFT_OUT, TEST
from api.data_sets.tables import data_set_photographs
from api.errors import RequestError
from api.messages.causes import load_cause
from api.training.jobs import ENDED, create_job
from api.training.schemas import NewTrainingJob, ProposalOrder, ProposalTraining
from api.training.tables import proposal_orders, training_jobs
from segdec.config import GOOD
from segdec.training_schemas import JobSettings

MIN_PARTS = 3
"""Good and defective parts that are needed: the training makes three folds, so that it uses all of them."""
OPEN = ("waiting", "started")
table, jobs, photographs = proposal_orders.c, training_jobs.c, data_set_photographs.c


@dataclass(frozen=True)
class LabelCounts:
    """What a data set has to learn from: parts by label, and photographs without one. A part with a defect is
    defective. Parts that do not train count for nothing: those in `test`, and those that the published split
    leaves out.
    """

    good_parts: int
    defective_parts: int
    unlabelled: int


def count_labels(connection: Connection, data_set_id: int) -> LabelCounts:
    """Counts the labels of a data set; raises a RequestError, 404, if it does not exist."""
    find_data_set(connection, data_set_id)
    kept = (photographs.data_set_id == data_set_id, photographs.removed_at.is_(None))
    is_defective = func.max(case((photographs.label != GOOD, 1), else_=0)).label("is_defective")
    own_part = case((photographs.part == "", photographs.id), else_=0)
    labelled = select(is_defective).where(*kept, photographs.label.is_not(None), photographs.label != IGNORE)
    labelled = labelled.where(_is_trained(data_set_id))
    parts = labelled.group_by(photographs.part, own_part).subquery()
    total, defective = connection.execute(
        select(func.count(), func.coalesce(func.sum(parts.c.is_defective), 0)).select_from(parts)
    ).one()
    unlabelled = select(func.count()).where(*kept, photographs.label.is_(None))
    return LabelCounts(total - defective, defective, connection.execute(unlabelled).scalar_one())


def _is_trained(data_set_id: int) -> ColumnElement[bool]:
    """Whether a version gives a labelled photograph to the training, as `place_photographs` decides."""
    others = photographs.data_set_id == data_set_id, photographs.removed_at.is_(None), photographs.part != ""
    labelled = photographs.label.is_not(None), photographs.label != IGNORE
    stated = select(photographs.part).where(*others, *labelled, photographs.split != LEFT_OUT)
    tested = stated.group_by(photographs.part)
    tested = tested.having(func.min(photographs.split) == TEST, func.max(photographs.split) == TEST)
    follows_part = photographs.split.is_(None) & photographs.part.not_in(tested)
    return follows_part | photographs.split.not_in([TEST, LEFT_OUT])


def check_labels(connection: Connection, data_set_id: int) -> None:
    """Checks that a model can be trained, and that photographs are left for it to propose labels.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if there are too few labels, or too many.
    """
    counts = count_labels(connection, data_set_id)
    if min(counts.good_parts, counts.defective_parts) < MIN_PARTS:
        text = (
            f"{{good}} good and {{defective}} defective part{'s' * (counts.defective_parts != 1)} for "
            "training have a label. Expected at least {needed} of each: label more photographs first."
        )
        values = {"good": counts.good_parts, "defective": counts.defective_parts, "needed": MIN_PARTS}
        raise RequestError(409, "too_few_labels", text, **values)
    if not counts.unlabelled:
        raise RequestError(409, "nothing_unlabelled", "All photographs of the data set are labelled.")


def create_order(
    connection: Connection, new: NewTrainingJob, used: Collection[str], who: str, now: datetime
) -> int:
    """Orders a training whose model proposes labels for the rest of the data set; returns the id of the job.

    Args: as of `create_job`.

    Raises:
        RequestError: As `create_job`; 409 if such a training of the data set waits or runs.
    """
    unfinished = select(table.job_id).join_from(proposal_orders, training_jobs, jobs.id == table.job_id)
    unfinished = unfinished.where(table.data_set_id == new.data_set, jobs.state.not_in(ENDED))
    if (job_id := connection.execute(unfinished).scalar()) is not None:
        detail = f"The training job {job_id} runs already for proposals. Wait for it, or cancel it."
        raise RequestError(409, "training_running", detail)
    job_id = create_job(connection, new, used, who, now)
    row = {"job_id": job_id, "data_set_id": new.data_set, "ordered_at": now, "ordered_by": who}
    connection.execute(insert(proposal_orders), {**row, "state": "waiting", "starts": 0})
    return job_id


def change_order(connection: Connection, job_id: int, **values: Any) -> None:
    """Changes columns of an order."""
    connection.execute(update(proposal_orders).where(table.job_id == job_id).values(values))


def list_due(connection: Connection) -> list[RowMapping]:
    """Returns the orders whose training is done and whose proposals have not ended, the oldest first."""
    statement = select(proposal_orders).join_from(proposal_orders, training_jobs, jobs.id == table.job_id)
    statement = statement.where(table.state.in_(OPEN), jobs.state == "done").order_by(table.job_id)
    return list(connection.execute(statement).mappings())


def find_newest_model(connection: Connection, data_set_id: int) -> str | None:
    """Returns the name of the model that was last ordered from a data set; None without one."""
    newest = select(jobs.model).where(jobs.data_set_id == data_set_id).order_by(jobs.id.desc()).limit(1)
    return connection.execute(newest).scalar()


def show_training(connection: Connection, data_set_id: int) -> ProposalTraining:
    """Returns what a data set has to learn from, and its latest training for proposals.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    counts = count_labels(connection, data_set_id)
    names = (jobs.model, jobs.version, jobs.settings, jobs.reason, jobs.state.label("job_state"))
    statement = select(proposal_orders, *names)
    statement = statement.join_from(proposal_orders, training_jobs, jobs.id == table.job_id)
    newest = statement.where(table.data_set_id == data_set_id).order_by(table.job_id.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return ProposalTraining(
        needed_parts=MIN_PARTS,
        good_parts=counts.good_parts,
        defective_parts=counts.defective_parts,
        unlabelled=counts.unlabelled,
        latest=None if row is None else _make_order(row),
    )


def _make_order(row: RowMapping) -> ProposalOrder:
    minutes = JobSettings.model_validate_json(row["settings"]).minutes
    others = {
        "error_cause": load_cause(row["error_cause"]),
        "training_job": row["job_id"],
        "minutes": minutes,
    }
    return ProposalOrder.model_validate({**row, **others})
