"""Results of candidates compared with the stable versions. Available if the service records."""

from fastapi import APIRouter

from api.errors import RequestError, document_problems
from api.http.roles import require_role
from api.inspecting.dependencies import NamedModelDep, ServiceDep
from api.inspecting.shadow.schemas import CandidateList, DifferencePage
from api.inspecting.shadow.shadow_results import list_differences, report_candidate
from api.record.record_params import BeforeId, PageSize, RecordDep

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


@router.get("/candidates/{name}/differences", responses=document_problems(400, 404, 503))
async def list_candidate_differences(
    name: str,
    service: ServiceDep,
    record: RecordDep,
    stable: NamedModelDep,  # noqa: ARG001
    before: BeforeId = None,
    limit: PageSize = 50,
) -> DifferencePage:
    """Photographs on which the candidate of a model differs from the version that answered, with both
    verdicts and the review; the newest first.
    """
    candidate = service.models.candidate(name)
    if candidate is None:
        raise RequestError(
            404, "no_candidate", f"The model '{name}' has no candidate. Set one: POST …/{name}/candidate."
        )
    return await record.read(list_differences, candidate.identity, before, limit)
