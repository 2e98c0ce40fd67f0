"""FLOPs against numbers worked out by hand."""

import pytest

from segdec.config import NetworkConfig

keras = pytest.importorskip("keras")

from segdec.network.network import build_network  # noqa: E402
from training.optimization.flops import Workload, count_forward_flops, count_step_flops  # noqa: E402
from training.stages import STAGES  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

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


@pytest.fixture(scope="module")
def network():
    return build_network(
        NetworkConfig(
            segmentation_widths=((2,), (3,), (4,)),
            feature_width=5,
            feature_kernel=3,
            decision_widths=(4, 2),
            num_classes=3,
        )
    )


@pytest.mark.parametrize(
    ("stage", "flops"),
    [
        ("segment", 3 * SEGMENTATION),
        ("decision", SEGMENTATION + 3 * DECISION),
        ("joint", 3 * (SEGMENTATION + DECISION)),
    ],
)
@pytest.mark.parametrize("images", [1, 6])
def test_a_step_counts_what_it_trains_three_times(network, stage, flops, images):
    (chosen,) = (each for each in STAGES if each.name == stage)
    assert count_step_flops(network, chosen, (images, 32, 16, 1)) == images * flops


def test_a_decoder_counts_too(network):
    fine = build_network(network.config.model_copy(update={"mask_stride": 4, "decoder_widths": (6, 1, 1)}))
    decoder = 2 * (4 * 2 * 6 * 5 + 8 * 4 * 6 * 9 * (6 + 4) + 8 * 4 * 1 * 6)
    image = keras.KerasTensor((1, 32, 16, 1))
    assert count_forward_flops(fine.segmentation, image) == SEGMENTATION + decoder


def test_speed_is_work_by_time_and_its_share_of_the_peak():
    speed = Workload(step_flops=6_000, peak_flops_per_s=40_000.0).speed(s_per_step=0.5)
    assert speed == {"model_flops_per_s": 12_000.0, "flop_utilisation": 0.3}
