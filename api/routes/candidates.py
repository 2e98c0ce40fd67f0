"""How candidates do, beside the versions that answer. Served where a record is kept."""

from fastapi import APIRouter

from api.dependencies import ServiceDep
from api.errors import describe_problems
from api.records.review.shadows import report_candidate
from api.records.schemas import CandidateList
from api.routes.records import RecordDep

router = APIRouter(prefix="/v1/review", tags=["review"])


@router.get("/candidates", responses=describe_problems(503))
async def list_candidates(service: ServiceDep, record: RecordDep) -> CandidateList:
    """What each candidate answered, how often it differs, and who was right by the reviews."""
    reports = []
    for candidate, serving in service.models.candidates():
        skipped = service.shadowing.metrics.skipped(candidate.identity)
        version = serving.identity.version
        reports.append(await record.read(report_candidate, candidate.identity, version, skipped))
    return CandidateList(candidates=reports)
