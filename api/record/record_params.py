"""Parameters and dependencies of the routes of the record."""

from datetime import UTC, date, datetime, time
from typing import Annotated

from fastapi import Depends, Path, Query
from pydantic import AfterValidator, AwareDatetime, Field

from api.errors import RequestError
from api.http.components import component
from api.http.number_text import DECIMAL_NUMBER, ISO_TIME, MAX_ID, MAX_PAGE_SIZE, OFFSET_PLUS, WHOLE_NUMBER
from api.http.request_params import Name
from api.messages.catalogues import DEFAULT, read_catalogues
from api.messages.language import Language, find_language
from api.record.current_settings import CurrentSettings
from api.record.events import Verdict
from api.record.filters import Filters
from api.record.inspection import Row
from api.record.queries import find_inspection
from api.record.record import Record
from api.record.record_view import record_not_found
from api.record.tables import UNUSUAL_DISTANCE
from api.record.tagging import MAX_LENGTH, split_tag
from segdec.errors import ConfigError
from segdec.runtime.identifiers import SCHEMA_PATTERN, check_identifier

Tag = Annotated[
    str,
    Field(max_length=2 * MAX_LENGTH + 1, json_schema_extra={"pattern": SCHEMA_PATTERN}),
    AfterValidator(check_identifier),
]
TextFilter = Annotated[Name | None, Query()]
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(2999, 12, 30)
"""Outside this range, a day has no midnight in some zone."""
Timestamp = Annotated[
    AwareDatetime | None,
    ISO_TIME,
    OFFSET_PLUS,
    Query(
        description="ISO 8601 with a zone",
        ge=datetime.combine(FIRST_DAY, time(), UTC),
        le=datetime.combine(LAST_DAY, time(), UTC),
    ),
]
RecordId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
BeforeId = Annotated[int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="only ids below it")]
PageSize = Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PAGE_SIZE)]


RecordDep = Annotated[Record, component(Record)]
CurrentSettingsDep = Annotated[CurrentSettings, component(CurrentSettings)]


async def find_row(record: RecordDep, record_id: RecordId) -> Row:
    """Returns the row of the inspection in the path.

    Raises:
        RequestError: 404 if it does not exist.
    """
    row = await record.read(find_inspection, record_id)
    if row is None:
        raise record_not_found(record_id)
    return row


RowDep = Annotated[Row, Depends(find_row)]


async def read_tag(
    metadata: Annotated[Tag | None, Query(description="KEY:VALUE, for example `lot:4711`")] = None,
) -> tuple[str, str] | None:
    """Returns key and value of the metadata in a query.

    Raises:
        RequestError: 400 if one of them is missing.
    """
    if metadata is None:
        return None
    tag = split_tag(metadata)
    if tag is None:
        detail = f"metadata is {metadata!r}. Expected KEY:VALUE, such as lot:4711."
        raise RequestError(400, "bad_parameter", detail)
    return tag


TagDep = Annotated[tuple[str, str] | None, Depends(read_tag)]


async def read_language(
    language: Annotated[
        str,
        Query(description="of texts, dates and numbers", json_schema_extra={"enum": [*read_catalogues()]}),
    ] = DEFAULT,
) -> Language:
    """Returns the language in a query.

    Raises:
        RequestError: 400 if it is unknown.
    """
    try:
        return find_language(language)
    except ConfigError as error:
        raise RequestError(400, "bad_parameter", str(error)) from error


LanguageDep = Annotated[Language, Depends(read_language)]


async def read_filters(
    tag: TagDep,
    station: TextFilter = None,
    part_id: TextFilter = None,
    verdict: Annotated[
        Verdict | None, Query(description="`defect` is any class; `not_inspected`: those kept for review")
    ] = None,
    label: TextFilter = None,
    since: Timestamp = None,
    until: Timestamp = None,
    version: Annotated[Name | None, Query(description="of the model")] = None,
    reviewed: bool | None = None,
    reviewer: TextFilter = None,
    min_distance: Annotated[
        float | None,
        DECIMAL_NUMBER,
        Query(ge=UNUSUAL_DISTANCE, allow_inf_nan=False, description="only if one of `distances` reaches it"),
    ] = None,
) -> Filters:
    """Returns the filters in a query."""
    return Filters(
        station=station,
        part_id=part_id,
        verdict=verdict,
        label=label,
        since=since,
        until=until,
        version=version,
        reviewed=reviewed,
        reviewer=reviewer,
        tag=tag,
        min_distance=min_distance,
    )


FiltersDep = Annotated[Filters, Depends(read_filters)]
