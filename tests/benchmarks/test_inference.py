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
from benchmarks.inference.competitors import EAGER
from benchmarks.inference.interleaved_timing import Timing
from benchmarks.reporting import interleave
from segdec.config import NetworkConfig
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
    answers = {"segdec tensorflow": (mask + 0.125, classes), EAGER: (mask, classes - 0.25)}
    timing = Timing(
        {"segdec tensorflow": [1.0], EAGER: [4.0]}, 100.0, {"segdec tensorflow": 7.0, EAGER: 8.0}, {}
    )
    row, _ = speed.tabulate((2, 704, 256), timing, answers, flop=25)
    assert row == {
        "case": "704 × 256, batch 2",
        "competitor": "segdec tensorflow",
        "s an image, median": 0.5,
        "s an image, min": 0.5,
        "s an image, max": 0.5,
        "times as fast as PyTorch eager": 4,
        "% of peak": 50,
        "memory peak, MB": 7,
        "mask differs by": 0.125,
        "class logits differ by": 0.25,
    }


def test_targets_judge_exact_and_reduced_engines_apart():
    columns = ("times as fast as PyTorch eager", "mask differs by", "memory peak, MB")
    figures = {
        "segdec tensorflow": (3.6, 1e-6, 1400.0),
        "segdec openvino": (1.5, 2e-5, 900.0),
        "segdec tensorflow-bfloat16": (6.0, 1e-2, 1600.0),
        "segdec openvino-int8": (9.0, 3e-2, 600.0),
        EAGER: (1.0, 0.0, 2000.0),
    }
    rows = {name: dict(zip(columns, values, strict=True)) for name, values in figures.items()}
    ours = [name.removeprefix("segdec ") for name in figures if name != EAGER]
    assert [target.value for target in speed.targets(rows, ours)] == [3.6, 9.0, 2e-5, 1400.0, 600.0]
    assert all(target.met for target in speed.targets(rows, ours))
    without = speed.targets(rows, ours[:1])
    assert [target.met for target in without] == [True, False, True, True, False]


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
    return {"case": "704 × 256, batch 1", "competitor": competitor, **seconds}


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
    assert "| 704 × 256, batch 1 | PyTorch eager | 1.75 | 1.5 | 2.25 |" in text
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
