import numpy as np
import pytest

from benchmarks.toy_difficulty import QUANTILES, SIGMAS, contrast, main
from datasets.layouts.toy import write_toy


def test_contrast_of_an_even_image_is_zero_and_of_a_speck_is_not():
    image = np.full((32, 32), 100, np.float32)
    assert contrast(image, SIGMAS[0]) == pytest.approx(np.zeros(len(QUANTILES)), abs=1e-4)
    image[16, 16] = 200
    blurred = contrast(image, 8.0)
    assert blurred[0] == pytest.approx(100 * (1 - 1 / (2 * np.pi * 64)), rel=1e-3)  # centre of the Gaussian
    assert np.all(np.diff(blurred) <= 0)


@pytest.mark.slow
def test_plain_threshold_reaches_the_documented_figure_on_the_documented_set(tmp_path, capsys):
    write_toy(tmp_path / "toy", 400)
    main([str(tmp_path / "toy")])
    words = capsys.readouterr().out.split()
    assert float(words[words.index("AP") + 1]) == pytest.approx(0.762, abs=0.02)
    assert "(80 images, 40 with a defect)" in " ".join(words)
