"""Shows which verdicts of recorded parts a plan would change. Available if the service records."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.errors import document_problems
from api.http.json_body import json_body
from api.http.number_text import WHOLE_NUMBER
from api.http.roles import require_role
from api.inspecting.dependencies import NamedModelDep, ServiceDep
from api.plans.plan_routes import MAX_BYTES, MAX_VALUES, make_judge, read_stored
from api.plans.schemas import PlanToSimulate
from api.plans.simulation import Simulation
from api.record.record_params import BeforeId, RecordDep, TextFilter
from segdec.schemas import PlanSimulation

router = APIRouter(prefix="/v1", tags=["plans"])
MAX_PARTS = 1000
Limit = Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PARTS, description="parts that are judged")]


@router.post(
    "/models/{name}/plans/simulation",
    dependencies=require_role("quality"),
    responses=document_problems(400, 404, 408, 409, 413, 415, 422, 503),
)
async def simulate_plan(
    sent: Annotated[PlanToSimulate, json_body(PlanToSimulate, MAX_BYTES, max_values=MAX_VALUES)],
    model: NamedModelDep,
    service: ServiceDep,
    record: RecordDep,
    station: TextFilter = None,
    before: BeforeId = None,
    limit: Limit = MAX_PARTS,
) -> PlanSimulation:
    """Judges the newest recorded parts by a plan, which need neither be active nor stored. A request ends
    early after 20 photographs that the model has to inspect again; the next one continues at `next_before`.
    """
    plan = sent.plan
    if plan is None:
        assert sent.version is not None  # checked by the body
        plan = (await read_stored(service, model, sent.version)).version.plan
    with model.usage:
        judge = await make_judge(plan, model, service)
        simulation = Simulation(record, service.background_inspector, model, judge)
        return await simulation.run(station, before, limit)
