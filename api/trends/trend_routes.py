"""Trends over days, weeks and months. Served if the service records."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query

from api.errors import RequestError, document_problems
from api.http.number_text import DATE
from api.http.request_params import Name
from api.http.roles import require_role
from api.record.filters import Filters
from api.record.record_params import FIRST_DAY, LAST_DAY, CurrentSettingsDep, RecordDep, TagDep, TextFilter
from api.trends.periods import PeriodKind, list_periods
from api.trends.schemas import TrendReport
from api.trends.trend_report import read_trends

router = APIRouter(prefix="/v1", tags=["trends"], dependencies=require_role("quality"))

DEFAULT_DAYS = {"day": 30, "week": 26 * 7, "month": 365}
"""Shown days without a first day."""
MAX_PERIODS = 400
Day = Annotated[date | None, DATE, Query(ge=FIRST_DAY, le=LAST_DAY)]


@router.get("/trends", responses=document_problems(400, 503))
async def show_trends(
    settings: CurrentSettingsDep,
    record: RecordDep,
    tag: TagDep,
    by: PeriodKind = "day",
    first: Day = None,
    last: Day = None,
    station: TextFilter = None,
    version: Annotated[Name | None, Query(description="of the model")] = None,
) -> TrendReport:
    """Defect rate with control limits; counts by class, station and version. Days are those of the plant."""
    zone, now = ZoneInfo(settings.current.record_zone), datetime.now(UTC)
    last = last or now.astimezone(zone).date()
    first = first or max(FIRST_DAY, last - timedelta(days=DEFAULT_DAYS[by] - 1))
    if first > last:
        raise RequestError(400, "bad_parameter", f"first is {first}, after last, {last}. Expected it before.")
    if (last - first).days >= MAX_PERIODS * {"day": 1, "week": 7, "month": 28}[by]:
        detail = f"{first} to {last} has more than {MAX_PERIODS} periods. Expected fewer, or by=month."
        raise RequestError(400, "bad_parameter", detail)
    periods = list(list_periods(by, first, last, zone))
    filters = Filters(station=station, version=version, tag=tag)
    return await record.read(read_trends, filters, by, periods, zone, now)
