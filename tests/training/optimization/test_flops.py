"""FLOPs against numbers worked out by hand, and the peak of devices against a clock of our own."""

import itertools
from types import SimpleNamespace

import pytest

from segdec.config import NetworkConfig

keras = pytest.importorskip("keras")

from segdec.network.network import build_network  # noqa: E402
from training.optimization import flops as flops_module  # noqa: E402
from training.optimization.flops import (  # noqa: E402
    count_flops,
    count_step_flops,
    measure_peak_flops,
    measure_strategy_peak,
)
from training.stages import STAGES  # noqa: E402

SEGMENTATION = 2 * (
    32 * 16 * 2 * 25 * 1  # 1/1: 1 → 2 channels, 5 × 5
    + 16 * 8 * 3 * 25 * 2  # 1/2: 2 → 3
    + 8 * 4 * 4 * 25 * 3  # 1/4: 3 → 4
    + 4 * 2 * 5 * 9 * 4  # 1/8: 4 → 5 features, 3 × 3
    + 4 * 2 * 1 * 5  # 5 → 1, the mask
)
DECISION = 2 * (
    2 * 1 * 4 * 25 * (5 + 1)  # 1/16: features and mask → 4
    + 1 * 1 * 2 * 25 * 4  # 1/32: 4 → 2
    + 3 * (2 + 2 + 1 + 1)  # two means and two maxima → 3 classes
)


CONFIG = NetworkConfig(
    segmentation_widths=((2,), (3,), (4,)),
    feature_width=5,
    feature_kernel=3,
    decision_widths=(4, 2),
    num_classes=3,
)


def test_a_step_counts_what_it_trains_three_times():
    network, images = build_network(CONFIG), (6, 32, 16, 1)
    flops = (3 * SEGMENTATION, SEGMENTATION + 3 * DECISION, 3 * (SEGMENTATION + DECISION))
    assert [count_step_flops(network, stage, images) for stage in STAGES] == [6 * each for each in flops]


def test_a_decoder_counts_too():
    fine = build_network(CONFIG.model_copy(update={"mask_stride": 4, "decoder_widths": (6, 1, 1)}))
    decoder = 2 * (4 * 2 * 6 * 5 + 8 * 4 * 6 * 9 * (6 + 4) + 8 * 4 * 1 * 6)
    image = keras.KerasTensor((1, 32, 16, 1))
    assert count_flops(fine.segmentation, image) == SEGMENTATION + decoder


def test_the_fastest_product_counts(monkeypatch):
    monkeypatch.setitem(flops_module.SIDES, "CPU", 8)
    durations = [4.0, 2.0, 0.5, 3.0, 4.0]
    clock = itertools.accumulate(number for duration in durations for number in (1.0, duration))
    assert measure_peak_flops("CPU:0", "float32", clock.__next__) == 2 * 8**3 / 0.5


@pytest.mark.parametrize(
    ("devices", "workers", "peak"),
    [
        (("/device:CPU:0", "/device:CPU:1"), 3, 30.0),  # logical CPUs are one
        (("/device:GPU:0", "/device:GPU:1"), 3, 60.0),
    ],
)
def test_the_peak_of_a_strategy_is_that_of_its_devices(monkeypatch, devices, workers, peak):
    measured = {("GPU:0" if "GPU" in devices[0] else "CPU:0", "float16"): 10.0}
    monkeypatch.setattr(flops_module, "measure_peak_flops", lambda *arguments: measured[arguments])
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))
    assert measure_strategy_peak(strategy, workers, "float16") == peak
