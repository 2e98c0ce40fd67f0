"""Deletes pictures of the record. Served if the service records."""

from fastapi import APIRouter
from starlette.requests import Request

from api.errors import document_problems
from api.http.callers import caller_of
from api.http.roles import require_role
from api.record.queries import find_inspection
from api.record.record_params import RecordDep, RowDep
from api.record.record_view import make_record
from api.record.schemas import InspectionRecord

router = APIRouter(prefix="/v1/admin/records", tags=["admin"], dependencies=require_role("engineer"))


@router.delete("/{record_id}/picture", responses=document_problems(400, 404, 503))
async def delete_picture(request: Request, record: RecordDep, row: RowDep) -> InspectionRecord:
    """Deletes the picture of an inspection immediately, also for all others with the same picture."""
    await record.delete_picture(row, caller_of(request))
    after = await record.read(find_inspection, row["id"])
    assert after is not None, "rows are never deleted"
    return make_record(after)
