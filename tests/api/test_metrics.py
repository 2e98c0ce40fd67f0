import pytest

from api.metrics import STEPS, Metrics
from segdec.schemas import ModelIdentity

FIRST = ModelIdentity(name="castings", version="1", sha256="aa")
SECOND = ModelIdentity(name="castings", version="2", sha256=None)
TIMES = {"queue_ms": 3.0, "decode_ms": 7.0, "infer_ms": 40.0, "encode_ms": 0.2}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(queue_depth=lambda: 5, ready=lambda: True)


def lines_of(metrics: Metrics) -> dict[str, float]:
    """Each series with its value; `le` bounds as they stand."""
    text = metrics.render()[0].decode()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, value in pairs}


def test_unknown_methods_share_a_series(metrics):
    for number in range(50):
        metrics.count_request(f"BREW{number}", "unmatched", 404, 1.0)
    counted = {s: v for s, v in lines_of(metrics).items() if s.startswith("segdec_requests_total")}
    assert counted == {'segdec_requests_total{code="404",method="other",route="unmatched"}': 50}


def test_answers_are_counted_by_model_and_version(metrics):
    metrics.observe_answer(FIRST, "good", 0.03, -3.5, **TIMES)
    metrics.observe_answer(FIRST, "scratch", 0.97, 3.5, **TIMES)
    metrics.observe_answer(SECOND, "good", 0.03, -3.5, **TIMES)
    lines = lines_of(metrics)
    where = 'model="castings",version="1"'
    assert lines[f'segdec_decisions_total{{label="good",{where}}}'] == 1
    assert lines[f'segdec_decisions_total{{label="scratch",{where}}}'] == 1
    ends = ("0.01", "0.05", "0.95", "0.99", "1.0")
    assert [lines[f'segdec_score_bucket{{le="{end}",{where}}}'] for end in ends] == [0, 1, 1, 2, 2]
    ends = ("-4.0", "-3.0", "3.0", "4.0")
    assert [lines[f'segdec_log_odds_bucket{{le="{end}",{where}}}'] for end in ends] == [0, 1, 1, 2]
    sums = [lines[f"segdec_{step}_milliseconds_sum{{{where}}}"] for step in STEPS]
    assert sums == pytest.approx([6.0, 14.0, 80.0, 0.4])
    assert lines['segdec_score_count{model="castings",version="2"}'] == 1


def test_distances_to_the_training_are_counted_by_measure(metrics):
    for distance in (0.2, 0.25, 1.2):
        metrics.observe_distances(FIRST, {"brightness": distance, "layout": 0.05})
    lines, where = lines_of(metrics), 'model="castings",version="1"'
    brightness = f'measure="brightness",{where}'
    ends = ("0.1", "0.2", "0.3", "1.0", "+Inf")
    found = [lines[f'segdec_training_distance_bucket{{le="{end}",{brightness}}}'] for end in ends]
    assert found == [0, 1, 2, 2, 3]
    assert lines[f'segdec_training_distance_bucket{{le="0.1",measure="layout",{where}}}'] == 3


def test_swapped_models_are_replaced_and_their_counters_stay(metrics):
    metrics.set_models([(FIRST, ["stable"])])
    metrics.observe_answer(FIRST, "good", 0.03, -3.5, **TIMES)
    metrics.set_models([(SECOND, ["stable", "canary"])])
    lines = lines_of(metrics)
    infos = {series: value for series, value in lines.items() if series.startswith("segdec_model_info")}
    assert infos == {'segdec_model_info{aliases="stable,canary",model="castings",sha256="",version="2"}': 1}
    assert lines['segdec_decisions_total{label="good",model="castings",version="1"}'] == 1
