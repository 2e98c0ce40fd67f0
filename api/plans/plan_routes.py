"""Stores inspection plans beside a model, lists them, and activates them for stations."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from api.errors import RequestError, document_problems
from api.http.json_body import json_body
from api.http.middleware.access import caller_fields, caller_name
from api.http.number_text import WHOLE_NUMBER
from api.http.roles import require_role
from api.inspecting.dependencies import NamedModelDep, ServiceDep
from api.inspecting.service import InspectionService
from api.models.active_plans import PlanChange
from api.models.plans import MAX_PLANS, NewPlan, PlanFolder, PlanNumber, StoredPlan
from api.models.registry import ServedModel
from api.plans.schemas import NewPlanVersion, PlanChoice, PlanDetail, PlanList
from api.record.audit import AuditEntry
from segdec.artifact import Manifest
from segdec.errors import ArtifactError, ConfigError
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge, check_trained_size
from segdec.plan.sentences import plan_text
from segdec.schemas import PlanSummary, ReloadAnswer

router = APIRouter(prefix="/v1", tags=["plans"])

MAX_BYTES, MAX_VALUES = 4 * 2**20, 200_000
"""Limits of the JSON of a plan."""
PAGE_SIZE = 20
STORE_PLAN = "store a plan"
Result = TypeVar("Result")
Number = Annotated[PlanNumber, WHOLE_NUMBER, Path()]
Before = Annotated[int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_PLANS + 1, description="only versions below")]


@router.get(
    "/models/{name}/plans",
    dependencies=require_role("operator"),
    responses=document_problems(400, 404, 409, 422, 503),
)
async def list_plans(model: NamedModelDep, service: ServiceDep, before: Before = None) -> PlanList:
    """Stored versions of the inspection plans for a model, the newest first."""
    if service.loader is None:
        return PlanList(plans=[], next_before=None, can_store=False)
    return await _read_in_thread(_read_page, _find_folder(service, model), model, before)


def _read_page(folder: PlanFolder, model: ServedModel, before: int | None) -> PlanList:
    numbers = [number for number in reversed(folder.numbers()) if before is None or number < before]
    plans = [_summarise(folder.read(number), model) for number in numbers[:PAGE_SIZE]]
    more = len(numbers) > PAGE_SIZE
    return PlanList(plans=plans, next_before=plans[-1].version if more else None)


@router.get(
    "/models/{name}/plans/{number}",
    dependencies=require_role("operator"),
    responses=document_problems(400, 404, 409, 422, 503),
)
async def get_plan(model: NamedModelDep, service: ServiceDep, number: Number) -> PlanDetail:
    """A stored version with its zones and rules."""
    return await _read_in_thread(_read_detail, _find_folder(service, model), model, number)


def _read_detail(folder: PlanFolder, model: ServedModel, number: int) -> PlanDetail:
    stored = _read_version(folder, number)
    plan = stored.version.plan
    return PlanDetail(
        **dict(_summarise(stored, model)), plan=plan.to_dict(), sentences=plan_text(plan).splitlines()
    )


def _read_version(folder: PlanFolder, number: int) -> StoredPlan:
    folder.check_exists(number)
    return folder.read(number)


async def read_stored(service: InspectionService, model: ServedModel, number: int) -> StoredPlan:
    """Reads a stored version.

    Raises:
        RequestError: 404 if it does not exist, 409 if it is damaged or the model has no place for plans.
    """
    return await _read_in_thread(_read_version, _find_folder(service, model), number)


def _summarise(stored: StoredPlan, model: ServedModel) -> PlanSummary:
    version = stored.version
    stations = [
        station for station, plan in sorted(model.plans.items()) if plan.stored.sha256 == stored.sha256
    ]
    return PlanSummary(
        version=version.number,
        name=version.plan.name,
        sha256=stored.sha256,
        created_at=version.created_at,
        author=version.author,
        reason=version.reason,
        stations=stations,
    )


@router.post(
    "/models/{name}/plans",
    dependencies=require_role("engineer"),
    responses=document_problems(400, 404, 408, 409, 413, 415, 422, 503),
)
async def store_plan(
    sent: Annotated[NewPlanVersion, json_body(NewPlanVersion, MAX_BYTES, max_values=MAX_VALUES)],
    model: NamedModelDep,
    request: Request,
    service: ServiceDep,
) -> PlanSummary:
    """Stores a new version of an inspection plan; it decides only after it is activated. The same plan that
    is sent again at once gets the same version.
    """
    folder, author = _find_folder(service, model), caller_name(caller_fields(request.scope))
    await make_judge(sent.plan, model, service)
    new = await _read_in_thread(folder.prepare, sent.plan, author, sent.reason, datetime.now(UTC))
    if isinstance(new, StoredPlan):
        return _summarise(new, model)
    await service.recording.change(_audit_entry(author, model, new), new.write, new.undo)
    return _summarise(new.stored, model)


async def make_judge(plan: Plan, model: ServedModel, service: InspectionService) -> PlanJudge:
    """Makes a judge for the stable version; RequestError, 422, if the plan does not fit it."""
    max_pixels = service.memory.largest(model.cost, has_plan=True).pixels
    return await asyncio.to_thread(_make_judge, plan, model, max_pixels)


def _make_judge(plan: Plan, model: ServedModel, max_pixels: int) -> PlanJudge:
    photograph = plan.photograph
    try:
        if photograph.width * photograph.height > max_pixels:
            raise ConfigError(
                f"It is for photographs of {photograph.width} × {photograph.height} px. Expected at most "
                f"{max_pixels:,} pixels, as this service accepts."
            )
        if isinstance(model.config, Manifest):
            check_trained_size(plan, model.config)
        return PlanJudge(plan, model.config)
    except ConfigError as error:
        identity = model.identity
        raise RequestError(
            422, "plan_does_not_fit", f"The plan does not fit {identity.name} {identity.version}: {error}"
        ) from error


def _audit_entry(author: str, model: ServedModel, new: NewPlan) -> AuditEntry:
    version = new.version
    after = {
        "model": model.identity.name,
        "plan": version.number,
        "name": version.plan.name,
        "sha256": new.stored.sha256,
        "reason": version.reason,
    }
    return AuditEntry(author, STORE_PLAN, {}, after)


@router.post(
    "/admin/models/{name}/plan",
    dependencies=require_role("engineer"),
    responses=document_problems(400, 404, 408, 409, 413, 415, 422, 500, 503),
)
async def activate_plan(
    choice: Annotated[PlanChoice, json_body(PlanChoice)], name: str, request: Request, service: ServiceDep
) -> ReloadAnswer:
    """Activates a stored plan at a station: it decides about photographs that arrive from now on."""
    change = PlanChange(choice.station, choice.version, choice.reason)
    return await service.change_model(name, change, caller_fields(request.scope))


async def _read_in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Calls a function in a thread; RequestError, 409, if a stored plan is damaged."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except ArtifactError as error:
        raise RequestError(409, "damaged_plans", str(error)) from error


def _find_folder(service: InspectionService, model: ServedModel) -> PlanFolder:
    """Returns the plans of a model; RequestError, 409 or 404, if it has no place for them."""
    if service.loader is None:
        raise RequestError(404, "model_not_found", f"The model '{model.identity.name}' is not on disk.")
    return service.loader.store.plans_of(model.identity.name)
