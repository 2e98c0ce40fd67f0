"""The inference benchmarks: the turn-taking processes, the arithmetic, the page.

Their figures are for people to read, and their peers are not installed here: neither is looked at.
"""

import json
import math
import sys

import numpy as np
import pytest

from benchmarks.inference import page, size, speed, training_step
from benchmarks.inference.arithmetic import network_flop
from benchmarks.inference.competitor import Competitor
from benchmarks.inference.competitors import EAGER, PUBLISHED_EAGER
from benchmarks.inference.interleaved_timing import Timing
from benchmarks.inference.plain_conversion import plain_counterpart
from benchmarks.inference.workload import peers_know
from benchmarks.reporting import interleave
from segdec.config import PRESETS, NetworkConfig
from segdec.engines import ENGINES
from segdec.errors import RunError

TRIVIAL = """
import sys
from benchmarks.inference.peers.answering import answer_requests

order = open(sys.argv[2], "ab", buffering=0)

def work():
    print("a library says something")
    order.write(sys.argv[1].encode())
    return {"loss": 0.5}

answer_requests(lambda: (work, "trivial 1"))
"""

TINY = NetworkConfig(
    segmentation_widths=((2,), (3,), (4,)), feature_width=5, feature_kernel=3, decision_widths=(2, 2, 2)
)


def trivial(name, order):
    return Competitor([sys.executable, "-c", TRIVIAL, name, str(order)])


# === Processes ===


def test_competitors_work_in_turn(tmp_path):
    order = tmp_path / "order"
    with trivial("a", order) as first, trivial("b", order) as second:
        assert order.read_text() == "aabb"  # each warms up alone
        measured = interleave({"a": first.ask, "b": second.ask}, rounds=2)
    assert order.read_text() == "aabb" + 3 * "ab"
    assert {name: len(seconds) for name, seconds in measured.items()} == {"a": 2, "b": 2}
    assert first.ready == {"version": "trivial 1", "loss": 0.5}
    assert [answer["loss"] for answer in second.answers] == [0.5] * 3
    assert measured["a"] == [answer["seconds"] for answer in first.answers[1:]]
    assert first.answers[-1]["peak_mb"] > 1


def test_a_competitor_that_ends_says_why():
    with (
        pytest.raises(RunError, match=r"left with 1\. It said:\nno such network"),
        Competitor([sys.executable, "-c", "raise SystemExit('no such network')"]),
    ):
        pass
    last = "print('{\"version\": 1}', flush=True); input(); raise SystemExit('out of memory')"
    with (
        Competitor([sys.executable, "-c", last]) as competitor,
        pytest.raises(RunError, match="out of memory"),
    ):
        competitor.ask()


def test_interleaved_timing_tells_ratio_and_share_of_the_peak():
    timing = Timing({"ours": [1.0, 2.0, 9.0], EAGER: [4.0, 6.0, 7.0]}, peak=100.0, peak_mb={}, versions={})
    assert timing.ratio("ours", EAGER) == 3
    assert timing.peak_share("ours", flop=50.0) == 25
    assert math.isnan(timing.ratio("ours", "who did not take part"))


# === Arithmetic ===

SEGMENTATION = (
    16 * 16 * 25 * 1 * 2  # 5×5, 1 → 2 channels
    + 8 * 8 * 25 * 2 * 3
    + 4 * 4 * 25 * 3 * 4
    + 2 * 2 * 9 * 4 * 5  # features
    + 2 * 2 * 5  # mask
)
DECISION = 25 * 6 * 2 + 25 * 2 * 2 + 25 * 2 * 2 + (2 * 2 + 2) * 2  # on one cell, however often it is halved
DECODER = 2 * 2 * 5 * 6 + 4 * 4 * 9 * (6 + 4) * 6 + 4 * 4 * 6


def test_arithmetic_of_a_small_network():
    assert network_flop(TINY, 16, 16) == 2 * (SEGMENTATION + DECISION)


def test_arithmetic_of_a_decoder():
    fine = TINY.model_copy(update={"mask_stride": 4, "decoder_widths": (6, 1, 1)})
    assert network_flop(fine, 16, 16) == 2 * (SEGMENTATION + DECISION + DECODER)


def test_the_feature_convolution_is_two_thirds_of_the_published_network():
    features = 2 * 176 * 64 * 15**2 * 64 * 1024
    assert features / network_flop(NetworkConfig(preset="seed"), 1408, 512) == pytest.approx(0.66, abs=0.005)


# === Speed ===


def test_rows_compare_with_pytorch():
    mask, classes = np.full((2, 1, 1, 1), 0.25), np.array([[0.5, 0.5]] * 2)
    plain = "plain tensorflow"
    answers = {"segdec tensorflow": (mask + 0.125, classes), EAGER: (mask, classes - 0.25)}
    answers |= {plain: answers[EAGER]}
    seconds = {"segdec tensorflow": [1.0], EAGER: [4.0], plain: [2.0]}
    cpu_seconds = {"segdec tensorflow": [4.0, 3.0, 9.0], EAGER: [8.0], plain: [3.75, 9.0]}
    peak_mb = {"segdec tensorflow": 7.0, EAGER: 8.0, plain: 9.0}
    timing = Timing(seconds, 100.0, peak_mb, {}, cpu_seconds)
    row, eager, _ = speed.tabulate((2, 704, 256), timing, answers, flop=25)
    assert math.isnan(eager[speed.BESIDE_PLAIN])
    assert row == {
        "case": "704 × 256, batch 2",
        "competitor": "segdec tensorflow",
        "s an image, median": 0.5,
        "s an image, min": 0.5,
        "s an image, max": 0.5,
        "times as fast as PyTorch eager": 4,
        "CPU s an image": 1.5,
        "times less CPU time than plain": 1.25,
        "% of peak": 50,
        "memory peak, MB": 7,
        "mask differs by": 0.125,
        "class logits differ by": 0.25,
    }


def test_answers_are_compared_with_plain_tensorflow_where_pytorch_is_missing():
    mask, classes = np.full((1, 1, 1, 1), 0.25), np.array([[0.5, 0.5]])
    answers = {"segdec openvino": (mask + 0.5, classes), "plain tensorflow": (mask, classes)}
    timing = Timing({name: [1.0] for name in answers}, 100.0, dict.fromkeys(answers, 7.0), {})
    row, plain = speed.tabulate((1, 704, 256), timing, answers, flop=25)
    assert (row["mask differs by"], plain["mask differs by"]) == (0.5, 0.0)


def test_targets_judge_exact_and_reduced_engines_apart():
    columns = ("times as fast as PyTorch eager", "mask differs by", "memory peak, MB")
    figures = {
        "segdec tensorflow": (3.6, 1e-6, 1400.0),
        "segdec openvino": (1.5, 2e-5, 900.0),
        "segdec tensorflow-bfloat16": (6.0, 1e-2, 1600.0),
        "segdec openvino-int8": (9.0, 3e-2, 600.0),
        EAGER: (1.0, 0.0, 2000.0),
    }
    aimed = {"network": speed.PUBLISHED, "case": speed.describe(speed.AIMED), speed.BESIDE_PLAIN: 1.5}
    rows = [
        aimed | {"competitor": name} | dict(zip(columns, values, strict=True))
        for name, values in figures.items()
    ]
    ours = [name.removeprefix("segdec ") for name in figures if name != EAGER]
    found = speed.targets(rows, ours)
    assert [target.value for target in found] == [3.6, 9.0, 2e-5, 1400.0, 600.0, *[1.5] * len(ours)]
    assert all(target.met for target in found)
    without = speed.targets(rows, ours[:1])
    assert [target.met for target in without] == [True, False, True, True, False, True]
    others = speed.targets([row | {"network": "compact"} for row in rows], ours[:1])
    assert [target.met for target in others] == [False] * 5 + [True]


def test_network_on_an_encoder_is_compared_with_pytorch_running_the_published_one():
    mask, classes = np.full((1, 1, 1, 1), 0.25), np.array([[0.5, 0.5]])
    answers = {"segdec openvino-int8": (mask + 0.5, classes), "plain tensorflow": (mask, classes)}
    seconds = {"segdec openvino-int8": [1.0], "plain tensorflow": [2.0], PUBLISHED_EAGER: [25.0]}
    timing = Timing(seconds, 100.0, dict.fromkeys(seconds, 7.0), {})
    rows = speed.tabulate(speed.AIMED, timing, answers, flop=math.nan)
    assert [row[speed.TIMES] for row in rows] == [25.0, 12.5, 1.0]
    assert [row["mask differs by"] for row in rows[:2]] == [0.5, 0.0]
    assert math.isnan(rows[2]["mask differs by"])
    named = [{"network": speed.PRETRAINED, **row} for row in rows]
    float32, int8 = speed.pretrained_targets(named, ["openvino", "openvino-int8"])
    assert (int8.value, int8.met, float32.met) == (25.0, True, False)
    assert speed.pretrained_targets(rows_of_others(named), ["openvino"]) == []


def rows_of_others(rows):
    return [row | {"network": "compact"} for row in rows]


def test_every_engine_must_not_be_slower_than_its_plain_conversion_anywhere():
    rows = [
        {"network": network, "case": "c", "competitor": "segdec openvino", speed.BESIDE_PLAIN: ratio}
        for network, ratio in {"seed": 3.0, "compact, instance": 0.25}.items()
    ]
    (target,) = speed.plain_targets(rows, ["openvino", "tensorflow"])
    assert (target.value, target.met) == (0.25, False)
    assert "compact, instance, c" in target.name


@pytest.mark.parametrize("name", speed.NETWORKS)
def test_all_presets_are_measured_and_the_peers_join_where_they_can(name):
    assert {network.preset for network in speed.NETWORKS.values()} == set(PRESETS)
    assert peers_know(speed.NETWORKS[name]) == (name not in ("jim2019", "comind2021", "mobilenet"))


def test_tensorflow_has_one_plain_conversion():
    counterparts = {engine: plain_counterpart(engine) for engine in ENGINES}
    assert counterparts.pop("tensorflow-bfloat16") == "tensorflow"
    assert all(engine == plain for engine, plain in counterparts.items())


def test_cases_that_do_not_fit_are_left_out():
    huge = (1, 2**20, 2**20)
    assert speed.fitting_cases([(1, 8, 8), huge], NetworkConfig(preset="seed"), 6) == [(1, 8, 8)]


def test_answers_are_read_from_logits(tmp_path):
    file = speed.logits_file(tmp_path, EAGER)
    np.savez(file, mask=np.zeros((1, 1, 1, 1), np.float32), classes=np.float32([[-1.0, 3.0]]))
    mask, classes = speed.read_answer(tmp_path, EAGER)
    assert mask.item() == 0.5
    assert classes.tolist() == [[-1.0, 3.0]]


# === Training step ===


def test_the_batch_fits_the_experiment():
    experiment = training_step.load_step_experiment()
    assert experiment.stages.joint.schedule.kind == "constant"
    batch = training_step.make_batch(experiment)
    shapes = {name: values.shape for name, values in batch.items()}
    mask = (2, 176, 64, 1)
    assert shapes == {"image": (2, 704, 256, 1), "target": mask, "weight": mask, "label": (2,)}
    assert batch["target"][0].max() == 0 < batch["target"][1].max()


# === Page ===

TARGETS = [
    {"name": "times", "value": 3.6, "lowest": 3.5, "highest": None, "met": True},
    {"name": "int8, MB", "value": math.nan, "lowest": None, "highest": 700.0, "met": False},
]
SIZES = [(size.BASE, 1.0), *((case, 2.0) for case in size.CASES[1:])]


def row(competitor, median):
    seconds = {
        "s an image, median": median,
        "s an image, min": median - 0.25,
        "s an image, max": median + 0.5,
    }
    return {"network": "seed", "case": "704 × 256, batch 1", "competitor": competitor, **seconds}


@pytest.fixture
def figures(tmp_path):
    """The files of a run."""
    machine = {"cores": "2", "of its instructions": ""}
    timing = {case: Timing({"ours": [seconds]}, 1.0, {}, {}) for case, seconds in SIZES}
    parts = {
        "speed": {
            "rows": [row("segdec tensorflow", 0.5), row(EAGER, 1.75)],
            "targets": TARGETS,
            "versions": {"a": "torch 1", "b": "torch 1; falls back."},
            "left_out": ["1408 × 512, batch 8"],
        },
        "training_step": {"rows": [{"competitor": "ours", "s a step, median": 0.123456}], "targets": []},
        "size": {
            "rows": [row for case in timing for row in size.tabulate(case, timing[case])],
            "targets": [],
        },
    }
    for name, part in parts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"machine": machine, "rounds": 5, **part}))
    return tmp_path


def test_the_page_holds_the_figures(figures, tmp_path):
    written = tmp_path / "performance.md"
    written.write_text(f"# Head\n\n{page.BEGIN}\nold\n{page.END}\n\nTail\n")
    words = ["--figures", str(figures), "--page", str(written)]
    page.main(words)
    text = written.read_text()
    assert text.startswith(f"# Head\n\n{page.BEGIN}\n\ncores 2.\n\n### Inference\n\n")
    assert text.endswith(f"{page.END}\n\nTail\n")
    assert "old" not in text
    assert "Rounds: 5. Libraries: torch 1. Left out, for want of memory: 1408 × 512, batch 8.\n\n" in text
    assert "\n\n- b: falls back.\n\n" in text
    assert "(performance.svg)" in text
    assert "| seed | 704 × 256, batch 1 | PyTorch eager | 1.75 | 1.5 | 2.25 |" in text
    assert "| competitor | s a step, median |\n| --- | --: |\n| ours | 0.1235 |" in text
    assert "| times | ≥ 3.5 | 3.6 | met |" in text
    assert "| int8, MB | ≤ 700 | not measured | missed |" in text
    drawn = (tmp_path / "performance.svg").read_bytes()
    assert EAGER.encode() in drawn
    page.main(words)
    assert (written.read_text(), (tmp_path / "performance.svg").read_bytes()) == (text, drawn)


def test_each_series_grows_one_thing():
    rows = [
        {"height": c.height, "width": c.width, "batch": c.batch, "features": c.features} for c in size.CASES
    ]
    grown = {series: sum(page.grows(row, series) for row in rows) for series in page.SERIES}
    assert grown == {"pixels": 3, "batch": 3, "features": 3}


def test_a_page_without_its_comments_is_refused():
    with pytest.raises(RunError, match="no place for the figures"):
        page.replace_figures("# Head\n", "figures")


def test_figures_that_are_missing_name_the_command(tmp_path):
    with pytest.raises(RunError, match="make bench"):
        page.read_figures(tmp_path / "speed.json")
