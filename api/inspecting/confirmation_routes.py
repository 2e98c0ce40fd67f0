"""Confirms photographs with the warning `unlike_training` as usual. Available if the service records."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field
from sqlalchemy import Connection, RowMapping, select
from starlette.requests import Request

from api.errors import RequestError, document_problems
from api.http.json_body import json_body
from api.http.middleware.access import caller_fields, caller_name
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.inspecting.dependencies import ModelVersionDep, NamedModelDep, ServiceDep
from api.inspecting.service import InspectionService
from api.models.confirmations import Confirm, ConfirmationChange, Measures, Withdraw
from api.models.registry import ServedModel
from api.record.record_params import RecordDep
from api.record.record_view import record_not_found
from api.record.tables import inspections
from segdec.schemas import ConfirmedPhotographs, ModelIdentity

router = APIRouter(prefix="/v1", tags=["models"])
MAX_RECORDS = 50
"""Photographs that a person confirms at once."""


class UsualPhotographs(SentModel):
    """Photographs with the warning `unlike_training` that are usual ones all the same."""

    records: list[Annotated[int, Field(gt=0, le=MAX_ID, strict=True)]] = Field(
        min_length=1,
        max_length=MAX_RECORDS,
        description="record ids of photographs that the stable version inspected",
    )


@router.post(
    "/models/{name}/confirmed",
    dependencies=require_role("reviewer"),
    responses=document_problems(400, 404, 408, 409, 413, 415, 422, 503),
)
async def confirm_photographs(
    model: NamedModelDep,
    sent: Annotated[UsualPhotographs, json_body(UsualPhotographs)],
    request: Request,
    service: ServiceDep,
    record: RecordDep,
) -> ConfirmedPhotographs:
    """Confirms photographs as usual: from now on, those like them get no warning. Photographs that are
    confirmed already stay so.
    """
    measures = await record.read(_read_measures, sent.records, model.identity)
    who = caller_name(caller_fields(request.scope))
    change = Confirm(model.identity, measures, who, datetime.now(UTC))
    return await _change(service, model, change, request)


@router.delete(
    "/admin/models/{name}/versions/{version}/confirmed/{number}",
    dependencies=require_role("engineer"),
    responses=document_problems(400, 404, 409, 422, 503),
)
async def withdraw_confirmation(
    model: ModelVersionDep,
    number: Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)],
    request: Request,
    service: ServiceDep,
) -> ConfirmedPhotographs:
    """Withdraws a confirmation of a version: its photographs widen the limits no longer."""
    return await _change(service, model, Withdraw(model.identity, number), request)


async def _change(
    service: InspectionService, model: ServedModel, change: ConfirmationChange, request: Request
) -> ConfirmedPhotographs:
    done = await service.change_model(model.identity.name, change, caller_fields(request.scope))
    changed = next(each for each in done.models if each.version == model.identity.version)
    assert changed.confirmed is not None
    return changed.confirmed


def _read_measures(
    connection: Connection, record_ids: Sequence[int], identity: ModelIdentity
) -> dict[int, Measures]:
    """Returns the measures beyond their limits of photographs that a model inspected, by record id.

    Raises:
        RequestError: 404 if there is no such record, 409 if another model inspected it, or it has no warning.
    """
    table = inspections.c
    columns = table.id, table.model, table.version, table.manifest_sha256, table.unlike
    statement = select(*columns).where(table.id.in_(record_ids))
    rows = {row["id"]: row for row in connection.execute(statement).mappings()}
    return {number: _measures(number, rows.get(number), identity) for number in sorted(set(record_ids))}


def _measures(number: int, row: RowMapping | None, identity: ModelIdentity) -> Measures:
    if row is None:
        raise record_not_found(number)
    if (row["model"], row["version"], row["manifest_sha256"]) != (
        identity.name,
        identity.version,
        identity.sha256,
    ):
        raise RequestError(
            409,
            "other_model",
            "Another model inspected photograph {number}: {model} {version}. Now {name} {stable} answers. "
            "Confirm photographs that this one inspected.",
            number=number,
            model=row["model"],
            version=row["version"],
            name=identity.name,
            stable=identity.version,
        )
    if row["unlike"] is None:
        raise RequestError(
            409,
            "not_warned",
            "Photograph {number} cannot be confirmed: it was inspected without the warning unlike_training, "
            "has it because of its size, or was refused. What certainly shows something else stays refused.",
            number=number,
        )
    measures: Measures = json.loads(row["unlike"])
    return measures
