"""The outbox: events that are still to be sent. Served if the service records."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from api.delivery import outbox_view
from api.delivery.receivers import Receivers
from api.delivery.schemas import OutboxChange, OutboxState
from api.errors import document_problems
from api.http.callers import caller_of
from api.http.components import component
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.http.request_params import RequiredName
from api.http.roles import require_role
from api.record.record_params import RecordDep

router = APIRouter(tags=["outbox"], dependencies=require_role("quality"))
admin_router = APIRouter(tags=["outbox"], dependencies=require_role("engineer"))

EventId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
SinkName = Annotated[RequiredName, Query(description="name of the receiver")]


@router.get("/v1/outbox", responses=document_problems(503))
async def show_outbox(
    record: RecordDep, receivers: Annotated[Receivers, component(Receivers)]
) -> OutboxState:
    """The backlog of each receiver, failing stations, and dead letters."""
    remarks = receivers.remarks()
    return await record.read(outbox_view.show_outbox, record.outbox.sinks, remarks)


@admin_router.post("/v1/admin/outbox/retry", responses=document_problems(400, 503))
async def retry_events(request: Request, record: RecordDep, sink: SinkName) -> OutboxChange:
    """Requeues up to 1000 dead letters for a receiver, the oldest first; 0: there are none left."""
    return OutboxChange(changed=await record.write(outbox_view.retry_all, sink, caller_of(request)))


@admin_router.post("/v1/admin/outbox/{event_id}/retry", responses=document_problems(400, 404, 409, 503))
async def retry_event(request: Request, record: RecordDep, event_id: EventId) -> OutboxChange:
    """Requeues a dead letter."""
    return OutboxChange(changed=await record.write(outbox_view.retry, event_id, caller_of(request)))


@admin_router.post("/v1/admin/outbox/{event_id}/discard", responses=document_problems(400, 404, 503))
async def discard_event(request: Request, record: RecordDep, event_id: EventId) -> OutboxChange:
    """Deletes an event that is not to be sent."""
    return OutboxChange(changed=await record.write(outbox_view.discard, event_id, caller_of(request)))
