import numpy as np
import pytest

from training.config import LossConfig

tf = pytest.importorskip("tensorflow")

from training.data.synthetic_source import ANY_DEFECT  # noqa: E402
from training.optimization.losses import box_weight, decision_loss, dice_loss, segmentation_loss  # noqa: E402

LN3 = float(np.log(3))  # a logit whose sigmoid is 3/4
ALL_TERMS = LossConfig(focal_gamma=1.5, dice_weight=0.7)
"""Every term of the loss."""


def pixels(*values):
    """One image of one row [1, 1, w, 1]."""
    return tf.constant(values, tf.float32)[None, None, :, None]


def loss_of(logits, target, weight=None, positive_weight=1.0, **terms):
    weight = tf.ones_like(target) if weight is None else weight
    return segmentation_loss(logits, target, weight, LossConfig(**terms), positive_weight)


def test_cross_entropy_by_hand():
    # Logit 0: ln 2 for any target. Logit 2 on a defect: ln(1 + e^−2) = 0.126928, on background 2.126928.
    logits = tf.constant([[[[0.0], [0.0]]], [[[2.0], [2.0]]]])
    target = tf.constant([[[[0.0], [1.0]]], [[[1.0], [0.0]]]])
    np.testing.assert_allclose(loss_of(logits, target), [0.693147, 1.126928], atol=1e-6)
    # Target 0.25, weight of defects 3: 3 · 0.25 · 0.126928 + 0.75 · 2.126928 = 1.690392.
    np.testing.assert_allclose(loss_of(pixels(2.0), pixels(0.25), positive_weight=3.0), [1.690392], atol=1e-6)
    # (2 · 0.126928 + 0.5 · 2.126928) / 2 = 0.658660: the mean is over pixels, not over weights.
    weighted = loss_of(pixels(2.0, 2.0), pixels(1.0, 0.0), pixels(2.0, 0.5))
    np.testing.assert_allclose(weighted, [0.658660], atol=1e-6)


def test_focal_factor_by_hand():
    # p = 3/4. Defect: (1/4)² ln(4/3) = 0.0179801; background: (3/4)² ln 4 = 0.7797905.
    for target, expected in ((1.0, 0.0179801), (0.0, 0.7797905), (0.25, 0.25 * 0.0179801 + 0.75 * 0.7797905)):
        np.testing.assert_allclose(
            loss_of(pixels(LN3), pixels(target), focal_gamma=2.0), [expected], rtol=1e-5
        )


def test_dice_by_hand():
    # p = 3/4 and 1/2, target 1 and 0: 1 − (2 · 0.75 + 1) / (1.25 + 1 + 1) = 0.2307692.
    logits, target = pixels(LN3, 0.0), pixels(1.0, 0.0)
    ones = tf.ones_like(target)
    np.testing.assert_allclose(dice_loss(logits, target, ones), [0.2307692], rtol=1e-5)
    both = loss_of(logits, target, dice_weight=0.5) - loss_of(logits, target)
    np.testing.assert_allclose(both, [0.1153846], rtol=1e-5)
    # A good image: 1 − 1 / (1.25 + 1). Pixels without weight do not count: 1 − 1 / (0.75 + 1).
    np.testing.assert_allclose(dice_loss(logits, 0.0 * target, ones), [0.5555556], rtol=1e-5)
    np.testing.assert_allclose(dice_loss(logits, 0.0 * target, target), [0.4285714], rtol=1e-5)


# === Boxes ===


def grid(rows):
    """Images of one mask, [B, h, w, 1], from [B][h][w]."""
    return tf.constant(rows, tf.float32)[..., None]


BOX = grid([[[1, 1, 0.5, 0], [1, 1, 0.5, 0], [0, 0, 0, 0]]])
IN_BOX = grid([[[1, 3, 2, 9], [5, 0, 4, 9], [8, 8, 8, 8]]])
COUNTED = [[0, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
"""The highest of the box are 3 and 5 in its rows, 5, 3 and 4 in its columns."""


def counted(weight):
    return (weight > 0).astype(int).tolist()


def test_in_a_box_the_highest_pixels_of_rows_and_columns_count():
    """Three of the six pixels, √(3 · 6) / 3 each; all of a mask."""
    weight = box_weight(*(tf.concat([one] * 2, 0) for one in (IN_BOX, BOX)), tf.constant([1, 0])).numpy()
    assert counted(weight[0, ..., 0]) == COUNTED
    inside = np.squeeze(BOX) > 0
    np.testing.assert_allclose(weight[0, inside].max(), np.sqrt(2), rtol=1e-6)
    assert (weight[0, ~inside] == 1).all()
    assert (weight[1] == 1).all()


def test_boxes_of_images_and_classes_are_apart():
    logits, boxes = (tf.concat([one, one[:, :, ::-1]], -1) for one in (IN_BOX, BOX))
    weight = box_weight(*(tf.concat([one] * 2, 0) for one in (logits, boxes)), tf.constant([1, 1])).numpy()
    for image in weight:
        assert counted(image[..., 0]) == counted(image[:, ::-1, 1]) == COUNTED


@pytest.mark.parametrize("axes", [[0, 1, 2, 3], [0, 2, 1, 3]])
def test_boxes_in_one_line_have_a_highest_pixel_each(axes):
    """Of equal ones all count."""
    lower, higher = [1, 2, 9, 6, 4, 6], [11, 12, 9, 16, 14, 16]
    boxes, logits = grid([[[1, 1, 0, 1, 1, 1]] * 2]), grid([[lower, higher]])
    weight = box_weight(*(tf.transpose(one, axes) for one in (logits, boxes)), tf.constant([1]))
    assert counted(tf.transpose(weight, axes)[0, ..., 0].numpy()) == [[0, 1, 1, 1, 0, 1], [1] * 6]


def test_only_counted_pixels_of_a_box_are_trained():
    logits, box = grid([[[1, 3, -4], [2, 0, -4]]]), grid([[[1, 1, 0], [1, 1, 0]]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = loss_of(logits, box, box_weight(logits, box, tf.constant([1])), positive_weight=3.0)
    # −3 · √(4 / 2) · (1 − p) / 6 at the highest pixels, p / 6 outside.
    high, higher = (-(0.5**0.5) / (1 + np.exp(logit)) for logit in (2, 3))
    outside = 1 / (1 + np.exp(4)) / 6
    expected = [[0, higher, outside], [high, 0, outside]]
    np.testing.assert_allclose(tape.gradient(loss, logits)[0, ..., 0], expected, rtol=1e-5)


def test_dice_counts_only_the_pixels_of_a_box_that_count():
    """Three pixels of the box, with a predicted 3/4 each: 1 − (2 · 9/4 + 1) / (9/4 + 3 + 1) = 0.12."""
    box = tf.cast(BOX > 0, tf.float32)
    counted = grid([COUNTED]) * box
    np.testing.assert_allclose(dice_loss(LN3 * tf.ones_like(box), box, counted), [0.12], rtol=1e-5)


@pytest.mark.parametrize("terms", [LossConfig(), ALL_TERMS])
def test_extreme_logits_have_finite_losses_and_gradients(terms):
    logits = pixels(-1e4, -100.0, 0.0, 100.0, 1e4)
    decisions = tf.constant([[1000.0, -1000.0, 0.0], [-1000.0, 1000.0, 1000.0]])
    for target in (0.0, 0.3, 1.0):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([logits, decisions])
            loss = segmentation_loss(logits, target * tf.ones_like(logits), tf.ones_like(logits), terms, 5.0)
            of_any = decision_loss(decisions, tf.constant([ANY_DEFECT, ANY_DEFECT]))
        for value in (loss, of_any, tape.gradient(loss, logits), tape.gradient(of_any, decisions)):
            assert np.isfinite(value).all()
    np.testing.assert_allclose(of_any, [1000.0, 0.0], atol=1e-4)


def test_gradients_agree_with_differences():
    logits = tf.constant(np.linspace(-3, 3, 6).reshape(1, 2, 3, 1))
    target, weight = (tf.constant(np.linspace(*ends, 6).reshape(1, 2, 3, 1)) for ends in ((0, 1), (2, 0.5)))

    def loss(values):
        return segmentation_loss(values, target, weight, ALL_TERMS, 3.0)

    (analytic,), (numeric,) = tf.test.compute_gradient(loss, [logits], delta=1e-5)
    np.testing.assert_allclose(analytic, numeric, atol=1e-8)


def test_decision_loss_by_hand():
    """Softmax of (0, ln 3, ln 2) is (1/6, 3/6, 2/6): a defect of unknown class has 5/6."""
    two = tf.math.log(tf.constant([[1.0, 3.0], [1.0, 3.0]]))
    np.testing.assert_allclose(decision_loss(two, tf.constant([0, 1])), [np.log(4), np.log(4 / 3)], rtol=1e-6)
    logits = tf.math.log(tf.constant([[1.0, 3.0, 2.0]] * 3))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = decision_loss(logits, tf.constant([0, 2, ANY_DEFECT]))
    np.testing.assert_allclose(losses, [np.log(6), np.log(3), np.log(6 / 5)], rtol=1e-6)
    # P(class) − P(class | defect): the defect classes keep their proportions.
    gradient = tape.gradient(losses, logits)[2]
    np.testing.assert_allclose(gradient, [1 / 6, 3 / 6 - 3 / 5, 2 / 6 - 2 / 5], rtol=1e-5)
