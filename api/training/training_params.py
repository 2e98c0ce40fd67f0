"""Parameters and dependencies of the routes of training jobs."""

from typing import Annotated

from fastapi import Header, Path

from api.http.components import component
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.training.training_store import TrainingStore

DIGEST_PATTERN = "^[0-9a-f]{64}$"
JobId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
DigestPath = Annotated[str, Path(pattern=DIGEST_PATTERN, description="SHA-256, hexadecimal")]
LeaseHeader = Annotated[
    str, Header(alias="X-Lease", pattern="^[0-9a-f]{32}$", description="of the answer that leased the job")
]


TrainingDep = Annotated[TrainingStore, component(TrainingStore)]
