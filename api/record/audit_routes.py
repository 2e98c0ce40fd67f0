"""The audit log. Served if the service records."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from api.errors import document_problems
from api.http.roles import require_role
from api.models.aliases import CANDIDATE, PROMOTE, ROLL_BACK
from api.models.confirmations import Confirm, Withdraw
from api.models.thresholds import ThresholdChange
from api.record.audit_view import list_changes
from api.record.record_params import BeforeId, PageSize, RecordDep, TextFilter
from api.record.schemas import AuditPage

MODEL_CHANGES = (
    *(CANDIDATE, PROMOTE.action, ROLL_BACK.action),
    *(ThresholdChange.action, Confirm.action, Withdraw.action),
)

router = APIRouter(prefix="/v1", tags=["records"], dependencies=require_role("quality"))


@router.get("/audit", responses=document_problems(400, 503))
async def show_changes(
    record: RecordDep,
    who: TextFilter = None,
    about: Annotated[
        Literal["models"] | None,
        Query(description="`models`: only changes of aliases, thresholds and confirmed photographs"),
    ] = None,
    before: BeforeId = None,
    limit: PageSize = 50,
) -> AuditPage:
    """Who changed what: reviews, deleted photographs, models, events; the newest first."""
    what = None if about is None else MODEL_CHANGES
    return await record.read(list_changes, before, limit, who, None, what)
