"""Parameters and dependencies of the routes of data sets."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query
from starlette.responses import Response

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.settings import DataSetSettings
from api.data_sets.unanswered_archives import UnansweredArchives
from api.errors import document_problems
from api.http.body_schemas import BINARY_SCHEMA
from api.http.components import component, get_settings
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.http.roles import require_role
from api.jobs.runner import JobRunner

MAX_NUMBER = 2**31 - 1
"""Largest number of a version."""
DataSetId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
ImportId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
PhotographId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
VersionNumber = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_NUMBER)]
AfterId = Annotated[int, WHOLE_NUMBER, Query(ge=0, le=MAX_ID, description="only ids above it")]
PROBLEMS = document_problems(400, 404, 503)
BODY_PROBLEMS = document_problems(400, 404, 408, 409, 413, 415, 503, 504)
READ, CHANGE = require_role("reviewer"), require_role("engineer")


def describe_file(*kinds: str) -> dict[str, Any]:
    """Returns the part of a route that describes a file as its answer."""
    content = {kind: {"schema": BINARY_SCHEMA} for kind in kinds}
    return {"response_class": Response, "responses": {200: {"content": content}, **PROBLEMS}}


JobsDep = Annotated[JobRunner, component(JobRunner)]
DataSetSettingsDep = Annotated[DataSetSettings, Depends(get_settings)]
DataSetsDep = Annotated[DataSetStore, component(DataSetStore)]
UnansweredDep = Annotated[UnansweredArchives, component(UnansweredArchives)]
