"""The three stages give the same numbers under every strategy and any number of replicas."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests import forked
from training.distribution.launch import make_clusters

STRATEGIES = {
    "single": ("single", "cpu:1"),
    "mirrored": ("mirrored", "cpu:2"),
    "mirrored-4": ("mirrored", "cpu:4"),
    "central-storage": ("central-storage", "cpu:2"),
    "multi-worker": ("multi-worker", "cpu:1"),
}
CASES = [
    ("batch", "none", "mirrored-4"),
    ("batch", "none", "central-storage"),
    ("batch", "none", "multi-worker"),
    ("instance", "none", "mirrored"),
    ("batch", "frozen", "multi-worker"),
    ("batch", "features", "mirrored"),
    ("batch", "all", "mirrored"),
]
"""Normalisation, what is trained of a pretrained encoder (see the worker), and strategy.

With instance normalisation a step is taken in parts.
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory, tiny_encoder_weights):
    """Returns the numbers of a case; each is trained when first asked for."""
    folder = tmp_path_factory.mktemp("equality")

    @cache
    def train(normalization, encoder, strategy):
        out = folder / f"{normalization}-{encoder}-{strategy}.npz"
        words = [*STRATEGIES[strategy], normalization, encoder, tiny_encoder_weights, out]
        clusters = make_clusters(2) if strategy == "multi-worker" else []
        environments = [{"TF_CONFIG": cluster.to_tf_config()} for cluster in clusters] or [{}]
        printed = out.with_suffix(".txt")
        processes = [
            forked.start("tests.training.equality_worker", *words, printed=printed, **environment)
            for environment in environments
        ]
        try:
            codes = [forked.wait(process) for process in processes]
        finally:
            for process in processes:
                process.kill()
        assert codes == [0] * len(processes), printed.read_text()
        with np.load(out) as numbers:
            return dict(numbers)

    return train


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_strategies_agree_with_one_device(train, case):
    """Weights, moving statistics, averages, losses and gradient norms; batch means synchronised.

    Frozen layers stay bit-identical on every replica, weights and moving statistics.
    """
    normalization, encoder, strategy = case
    expected, ours = train(normalization, encoder, "single"), train(normalization, encoder, strategy)
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        assert np.isfinite(value).all(), name
        np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-10, err_msg=name)
    moved = {bool(value) for name, value in ours.items() if name.startswith("moved/")}
    assert moved == (set() if encoder == "none" else {encoder == "all"})
