import math

import cv2
import numpy as np
import pytest

from training.photograph_alterations import ALTERATIONS, measure_alterations


@pytest.fixture(scope="module")
def shifts():
    """Mean changes of photographs of grains of about 3 px, by cause in the order of their strength."""
    random = np.random.default_rng(0)
    grains = [80 + cv2.GaussianBlur(random.normal(0, 60, (96, 96)), (0, 0), 1) for _ in range(3)]
    photographs = [np.clip(each.round(), 0, 255).astype(np.uint8)[..., None] for each in grains]
    shifts = {}
    for alteration in measure_alterations(photographs):
        shifts.setdefault(alteration.cause, []).append(alteration.shifts)
    return shifts


def test_every_cause_is_measured(shifts):
    assert sum(map(len, shifts.values())) == len(ALTERATIONS)
    assert set(shifts) == {"darker", "brighter", "less contrast", "blurred", "noisier"}


def test_light_changes_the_mean_as_calculated(shifts):
    """The mean is 80: its log-odds after 0.2 of the light are those of 16."""
    before, after = (math.log((mean + 1) / (256 - mean)) for mean in (80, 0.2 * 80))
    assert shifts["darker"][-1]["brightness"][0] == pytest.approx(after - before, abs=0.05)
    assert shifts["brighter"][-1]["brightness"][0] > 1 > abs(shifts["less contrast"][-1]["brightness"][0])


def test_blur_removes_details_and_noise_adds_them(shifts):
    weak, strong, *_ = (each["sharpness"] for each in shifts["blurred"])
    assert strong[1] < weak[1] < 0  # of 4 px
    weak, _, strong, *_ = (each["sharpness"] for each in shifts["noisier"])
    assert strong[0] > weak[0] > 0  # of 2 px
    assert abs(shifts["darker"][0]["sharpness"][1]) < 0.1


def test_the_result_is_repeatable():
    photographs = [np.random.default_rng(1).integers(0, 256, (40, 48, 3), np.uint8)]
    assert measure_alterations(photographs) == measure_alterations(photographs)
    assert set(measure_alterations(photographs)[0].shifts) >= {"colour", "brightness"}
