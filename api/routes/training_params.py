"""Parameters and dependencies of the routes of training jobs."""

from typing import Annotated

from fastapi import Depends, Header, Path

from api.routes.dependencies import ServiceDep
from api.routes.number_text import WHOLE_NUMBER
from api.routes.record_filters import MAX_ID
from api.training_jobs.training_store import TrainingStore

BODY_PROBLEMS = (400, 404, 408, 409, 413, 415, 503, 504)
MAX_MINUTES = 60 * 24 * 31
"""Time limit of a training."""
DIGEST_PATTERN = "^[0-9a-f]{64}$"
JobId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]
DigestPath = Annotated[str, Path(pattern=DIGEST_PATTERN, description="SHA-256, hexadecimal")]
LeaseHeader = Annotated[
    str,
    Header(alias="X-Lease", pattern="^[0-9a-f]{32}$", description="of the answer that leased the job"),
]


async def get_training(service: ServiceDep) -> TrainingStore:
    """Returns the training jobs."""
    training = service.training
    assert training is not None, "these routes are served only with a record"
    return training


TrainingDep = Annotated[TrainingStore, Depends(get_training)]
