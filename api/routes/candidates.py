"""Results of candidates compared with the stable versions. Available if the service records."""

from fastapi import APIRouter

from api.errors import document_problems
from api.records.review.shadow_results import report_candidate
from api.records.schemas import CandidateList
from api.routes.dependencies import ServiceDep
from api.routes.record_filters import RecordDep
from api.routes.roles import require_role

router = APIRouter(prefix="/v1/review", tags=["review"], dependencies=require_role("quality"))


@router.get("/candidates", responses=document_problems(503))
async def list_candidates(service: ServiceDep, record: RecordDep) -> CandidateList:
    """Per candidate: number of predictions, number of differences, and which model was right according to
    reviews.
    """
    reports = []
    for candidate, serving in service.models.candidates():
        skipped_counts = service.shadowing.metrics.skipped_counts(candidate.identity)
        version = serving.identity.version
        reports.append(await record.read(report_candidate, candidate.identity, version, skipped_counts))
    return CandidateList(candidates=reports)
