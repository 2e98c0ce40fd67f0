"""Memory of an inspection plan's verdict."""

import tracemalloc

import numpy as np
import pytest

from api.inference.memory_budget import PLAN_BYTES, PLAN_BYTES_PER_PIXEL
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge
from tests.segdec.plan.plans import make_model, predict, rectangle

SIDE = 256
RULES = ({"longer_than": "4 mm", "then": "reject"}, {"total_larger_than": "2 %", "then": "review"})


def mesh():
    scores = np.full((SIDE, SIDE), 0.01, np.float32)
    scores[::40] = scores[:, ::40] = 0.9
    return scores


def one_colour():
    return np.full((SIDE, SIDE), 0.9, np.float32)


@pytest.mark.parametrize("scores", [mesh, one_colour])
def test_a_verdict_takes_no_more_memory_than_is_reserved(scores):
    zones = {"all": rectangle(0, 0, SIDE, SIDE, rules=RULES), "left": rectangle(0, 0, 100, SIDE, rules=RULES)}
    photograph = {"width": SIDE, "height": SIDE, "mm_per_px": 0.05}
    plan = Plan.model_validate({"name": "memory", "photograph": photograph, "zones": zones})
    model = make_model()
    judge, prediction = PlanJudge(plan, model), predict(scores(), model)
    tracemalloc.start()
    try:
        judge.judge(prediction, unlike=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= PLAN_BYTES_PER_PIXEL * SIDE**2 + PLAN_BYTES
