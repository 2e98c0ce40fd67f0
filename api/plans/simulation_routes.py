"""Shows which verdicts of recorded parts a stored plan would change. Available if the service records."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from api.errors import RequestError, document_problems
from api.http.number_text import WHOLE_NUMBER
from api.http.roles import require_role
from api.inspecting.dependencies import NamedModelDep, ServiceDep
from api.models.active_plans import make_active_plan
from api.plans.plan_routes import Number, read_stored
from api.plans.simulation import Simulation
from api.record.record_params import BeforeId, RecordDep, TextFilter
from segdec.errors import ArtifactError
from segdec.schemas import PlanSimulation

router = APIRouter(prefix="/v1", tags=["plans"])
MAX_PARTS = 1000
Limit = Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PARTS, description="parts that are judged")]


@router.post(
    "/models/{name}/plans/{number}/simulation",
    dependencies=require_role("engineer"),
    responses=document_problems(400, 404, 409, 422, 503),
)
async def simulate_plan(
    model: NamedModelDep,
    service: ServiceDep,
    record: RecordDep,
    number: Number,
    station: TextFilter = None,
    before: BeforeId = None,
    limit: Limit = MAX_PARTS,
) -> PlanSimulation:
    """Judges the newest recorded parts by a stored plan, which need not be active. A request ends early after
    20 photographs that the model has to inspect again; the next one continues at `next_before`.
    """
    stored = await read_stored(service, model, number)
    try:
        plan = await asyncio.to_thread(make_active_plan, stored, model.identity, model.config)
    except ArtifactError as error:
        raise RequestError(422, "plan_does_not_fit", str(error)) from error
    with model.usage:
        simulation = Simulation(record, service.background_inspector, model, plan.judge)
        return await simulation.run(station, before, limit)
