"""Duration of an inspection plan's verdict on one photograph, without the network.

    python -m benchmarks.plan_speed

The photograph has 1408 × 512 px with two straight and two bent scratches and eight pores, each with weak
scores around. Zones are rectangles of random size, each with three rules.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import markdown_table
from benchmarks.measuring import RenderedDefect, bent_scratch, pore, straight_scratch
from segdec.config import InputConfig, ModelConfig, NetworkConfig, SizeErrors, Thresholds
from segdec.inference.postprocessing import Prediction, find_regions
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge

HEIGHT, WIDTH = 512, 1408
ZONES = (1, 20, 100)
ROUNDS = 50
MODEL = ModelConfig(
    network=NetworkConfig(),
    input=InputConfig(),
    classes=("good", "scratch"),
    thresholds=Thresholds(score=0.5, mask=0.5),
    size_errors=SizeErrors(length=(0.7, 1.5), width=(0.7, 1.5), area=(0.5, 2), defects=30),
)
RULES = (
    {"longer_than": "2 mm", "then": "reject"},
    {"larger_than": "1 mm²", "then": "review"},
    {"more_than": 5, "counted_from": "0.2 mm", "then": "reject"},
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each number of zones."""
    argparse.ArgumentParser(description="Duration of an inspection plan's verdict.").parse_args(arguments)
    random = np.random.default_rng(0)
    prediction = predict(render(random))
    rows = []
    for count in ZONES:
        began = time.perf_counter()
        judge = PlanJudge(make_plan(count, random), MODEL)
        loading_ms = 1000 * (time.perf_counter() - began)
        durations = [_judge_ms(judge, prediction) for _ in range(ROUNDS)]
        median, slow = np.percentile(durations, [50, 95])
        rows.append([str(count), f"{median:.1f}", f"{slow:.1f}", f"{loading_ms:.0f}"])
    print(markdown_table(["zones", "verdict, median ms", "95 % ms", "loading the plan, ms"], rows))


def _judge_ms(judge: PlanJudge, prediction: Prediction) -> float:
    began = time.perf_counter()
    judge.judge(prediction, unlike=False)
    return 1000 * (time.perf_counter() - began)


def render(random: np.random.Generator) -> NDArray[np.float32]:
    """Returns mask scores [H, W]: 0.9 in defects, 0.1 up to 6 px around, 0.01 elsewhere."""
    scores = np.full((HEIGHT, WIDTH), 0.01, np.float32)
    for draw in (*[_draw_straight] * 2, *[_draw_bent] * 2, *[_draw_pore] * 8):
        x, y = random.uniform(60, WIDTH - 60), random.uniform(60, HEIGHT - 60)
        rows, columns = np.mgrid[:HEIGHT, :WIDTH] + 0.5
        scores[draw(columns - x, rows - y, 6).mask] = 0.1
        scores[draw(columns - x, rows - y, 0).mask] = 0.9
    return scores


def _draw_straight(along: NDArray[np.float64], across: NDArray[np.float64], around: float) -> RenderedDefect:
    return straight_scratch(along, across, 80 + 2 * around, 5 + 2 * around)


def _draw_bent(along: NDArray[np.float64], across: NDArray[np.float64], around: float) -> RenderedDefect:
    return bent_scratch(along, across, 40, 5 + 2 * around, np.pi / 2)


def _draw_pore(along: NDArray[np.float64], across: NDArray[np.float64], around: float) -> RenderedDefect:
    return pore(along, across, 9 + 2 * around)


def predict(scores: NDArray[np.float32]) -> Prediction:
    """Returns a defective prediction with these mask scores."""
    mask = np.where(scores >= MODEL.thresholds.mask, np.uint8(255), np.uint8(0))
    return Prediction(
        label="scratch",
        score=0.9,
        log_odds=2.0,
        threshold=MODEL.thresholds.score,
        review_threshold=None,
        probabilities={"good": 0.1, "scratch": 0.9},
        mask=mask,
        mask_scores=scores,
        grid_scores=scores,
        mask_threshold=MODEL.thresholds.mask,
        regions=find_regions(mask, scores),
    )


def make_plan(zones: int, random: np.random.Generator) -> Plan:
    """Returns a plan with rectangles of random place and size, which overlap."""
    named = {}
    for number in range(zones):
        width, height = random.uniform(50, WIDTH / 2), random.uniform(50, HEIGHT / 2)
        corner = random.uniform(0, WIDTH - width), random.uniform(0, HEIGHT - height)
        shape = {"corner": corner, "width": width, "height": height}
        named[f"zone {number}"] = {"rectangle": shape, "rules": RULES}
    photograph = {"width": WIDTH, "height": HEIGHT, "mm_per_px": 0.05}
    return Plan.model_validate({"name": "speed", "photograph": photograph, "zones": named})


if __name__ == "__main__":
    main()
