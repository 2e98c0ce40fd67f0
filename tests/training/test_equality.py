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
    "central-storage": ("central-storage", "cpu:2"),
    "multi-worker": ("multi-worker", "cpu:1"),
}
CASES = [("none", "mirrored"), ("none", "central-storage"), ("none", "multi-worker"), ("all", "mirrored")]
"""What is trained of a pretrained encoder (see the worker), and strategy.

For parts of a step, frozen encoders and features see `optimization/test_step` and
`test_encoder_step`.
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory, tiny_encoder_weights):
    """Returns the numbers of a case; each is trained when first asked for."""
    folder = tmp_path_factory.mktemp("equality")

    @cache
    def train(encoder, strategy):
        out = folder / f"{encoder}-{strategy}.npz"
        arguments = [*STRATEGIES[strategy], encoder, tiny_encoder_weights, out]
        clusters = make_clusters(2) if strategy == "multi-worker" else []
        environments = [{"TF_CONFIG": cluster.to_tf_config()} for cluster in clusters] or [{}]
        printed = out.with_suffix(".txt")
        processes = [
            forked.start("tests.training.equality_worker", *arguments, printed=printed, **environment)
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
@pytest.mark.parametrize(("encoder", "strategy"), CASES)
def test_strategies_agree_with_one_device(train, encoder, strategy):
    """Weights, moving statistics, averages, losses and gradient norms; batch means synchronised."""
    expected, ours = train(encoder, "single"), train(encoder, strategy)
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        assert np.isfinite(value).all(), name
        np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-10, err_msg=name)
