"""Deletes pictures of the record. Served if the service records."""

from fastapi import APIRouter
from starlette.requests import Request

from api.accounts.access import caller_of
from api.errors import document_problems
from api.records.queries import find_inspection
from api.records.record_view import make_record
from api.records.schemas import InspectionRecord
from api.routes.record_filters import RecordDep, RowDep
from api.routes.roles import require_role

router = APIRouter(prefix="/v1/admin/records", tags=["admin"], dependencies=require_role("engineer"))


@router.delete("/{record_id}/picture", responses=document_problems(400, 404, 503))
async def delete_picture(request: Request, record: RecordDep, row: RowDep) -> InspectionRecord:
    """Deletes the picture of an inspection immediately, also for all others with the same picture."""
    await record.delete_picture(row, caller_of(request))
    after = await record.read(find_inspection, row["id"])
    assert after is not None, "rows are never deleted"
    return make_record(after)
