import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from training.losses import decision_loss, segmentation_loss  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def test_segmentation_loss_by_hand():
    # Logit 0: ln 2 whatever the target. Logit 2 on a defect: ln(1 + e^−2) = 0.126928, on background 2.126928.
    logits = tf.constant([[[[0.0], [0.0]]], [[[2.0], [2.0]]]])
    target = tf.constant([[[[0.0], [1.0]]], [[[1.0], [0.0]]]])
    np.testing.assert_allclose(segmentation_loss(logits, target, 1.0), [0.693147, 1.126928], atol=1e-6)


def test_positive_weight_and_soft_targets_by_hand():
    # Logit 2, target 0.25, weight 3: 3 · 0.25 · 0.126928 + 0.75 · 2.126928 = 1.690392.
    loss = segmentation_loss(tf.constant([[[[2.0]]]]), tf.constant([[[[0.25]]]]), 3.0)
    np.testing.assert_allclose(loss, [1.690392], atol=1e-6)


def test_decision_loss_by_hand():
    # Softmax of (0, ln 3) is (1/4, 3/4).
    logits = tf.math.log(tf.constant([[1.0, 3.0], [1.0, 3.0]]))
    np.testing.assert_allclose(
        decision_loss(logits, tf.constant([0, 1])), [np.log(4), np.log(4 / 3)], rtol=1e-6
    )
