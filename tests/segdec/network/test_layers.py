import cv2
import numpy as np
import pytest

keras = pytest.importorskip("keras")

from segdec.config import NetworkConfig  # noqa: E402
from segdec.network.layers import (  # noqa: E402
    BilinearUpsampling,
    ComputePolicy,
    DefectAndClass,
    FeatureNormalization,
    GradientGate,
    InstanceNormalization,
    ReplicaBatchNormalization,
    ignore_dummy_images,
    normalization,
)


def test_feature_normalization_by_hand():
    # Channel values 1 3 5 7: mean 4, unbiased variance (9 + 1 + 1 + 9) / 3 = 20/3, std 2.581989,
    # divisor sqrt(2.581989 + 0.001) = 1.607168; gamma 2, beta 0.5: y = 2 · (x − 4) / 1.607168 + 0.5.
    layer = FeatureNormalization(epsilon=1e-3)
    image = np.array([1, 3, 5, 7], np.float32).reshape(1, 2, 2, 1)
    layer.build(image.shape)
    layer.set_weights([np.array([2.0], np.float32), np.array([0.5], np.float32)])
    expected = np.array([-3.233275, -0.744425, 1.744425, 4.233275], np.float32).reshape(1, 2, 2, 1)
    np.testing.assert_allclose(layer(image), expected, atol=2e-6)


def test_feature_normalization_of_a_flat_image_is_its_offset_with_finite_gradients():
    import tensorflow as tf

    layer = FeatureNormalization()
    image = tf.Variable(np.full((1, 4, 4, 1), 3.0, np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(image) ** 2)
    assert float(loss) == 0.0
    assert np.isfinite(tape.gradient(loss, image)).all()


@pytest.mark.parametrize(("factor", "size"), [(2, (1, 1)), (2, (3, 5)), (8, (3, 5))])
def test_upsampling_is_that_of_opencv(factor, size):
    image = np.random.default_rng(0).normal(size=(*size, 2)).astype(np.float32)
    expected = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    np.testing.assert_allclose(BilinearUpsampling(factor)(image[None])[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "weights"),
    [
        (FeatureNormalization(epsilon=0.01, center=False), 1),
        (InstanceNormalization(epsilon=0.01, center=False), 1),
        (GradientGate(), 0),
        (BilinearUpsampling(4), 0),
        (ReplicaBatchNormalization(momentum=0.8), 4),
    ],
)
def test_layer_contract(layer, weights):
    """Config round trip, symbolic = eager, half precision, save and load of the weights."""
    image = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)
    eager = np.asarray(layer(image))
    assert len(layer.weights) == weights
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    again.build(image.shape)
    again.set_weights(layer.get_weights())
    inputs = keras.Input((None, None, 3))
    symbolic = keras.Model(inputs, again(inputs))
    np.testing.assert_allclose(symbolic(image), eager, atol=1e-6)
    half = type(layer).from_config({**layer.get_config(), "dtype": "mixed_float16"})
    assert half(image).dtype == "float16"


def test_moving_statistics_are_averaged_over_replicas():
    layer = ReplicaBatchNormalization()
    layer.build((None, 4, 4, 2))
    assert [weight.aggregation for weight in layer.weights] == ["none", "none", "mean", "mean"]


def run_on_two(devices, values, present):
    """Output and moving statistics of a synchronised layer whose replicas hold `values`."""
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        layer = ReplicaBatchNormalization(momentum=0.0, epsilon=1e-3, synchronized=True)
        layer.build((None, None, None, 1))

    def call(x, real):
        with ignore_dummy_images(real):
            return layer(x, training=True)

    def of_replica(arrays):
        return strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(arrays[context.replica_id_in_sync_group], tf.float32)
        )

    images = [np.array(row, np.float32).reshape(-1, 1, 1, 1) for row in values]
    outputs = tf.function(strategy.run)(call, (of_replica(images), of_replica(present)))
    outputs = [np.ravel(output) for output in strategy.experimental_local_results(outputs)]
    mean, variance = (one.value.values[1] for one in (layer.moving_mean, layer.moving_variance))
    return outputs, float(mean[0]), float(variance[0])


@pytest.mark.parametrize(
    ("values", "present", "mean", "variance"),
    [
        # Mean 4, variance (9 + 1 + 1 + 9) / 4 = 5; replicas of three images and of one.
        (([1, 3, 5], [7]), (1.0, 1.0), 4.0, 5.0),
        (([1, 3], [1000]), (1.0, 0.0), 2.0, 1.0),  # a dummy image is ignored
        (([9999, 10001], [9999, 10001]), (1.0, 1.0), 10000.0, 1.0),  # E[x²] − E[x]² is 0 or 8 in float32
    ],
)
def test_synchronized_statistics_by_hand(values, present, mean, variance, tensorflow_devices):
    outputs, *found = run_on_two(tensorflow_devices, values, present)
    assert found == pytest.approx((mean, variance), rel=1e-6)
    for one, output in zip(values, outputs, strict=True):
        np.testing.assert_allclose(output, (np.array(one) - mean) / np.sqrt(variance + 1e-3), rtol=1e-3)


@pytest.mark.parametrize("folded", [False, True], ids=["trained", "served"])
def test_instance_normalization_matches_its_definition(folded):
    layer = normalization(NetworkConfig(normalization="instance"), policy=ComputePolicy(folded=folded))
    image = np.random.default_rng(2).normal(3.0, 2.0, (2, 6, 7, 3)).astype(np.float32)
    mean, variance = image.mean((1, 2), keepdims=True), image.var((1, 2), keepdims=True)
    np.testing.assert_allclose(layer(image), (image - mean) / np.sqrt(variance + 1e-3), atol=1e-5)


def test_defect_and_class_are_separate_outputs():
    """The log-odds of a defect do not depend on the logits of its class, even for extreme logits."""
    inputs = np.array(
        [[0.0, 1.0, 1.0], [2.0, 5.0, -5.0], [-200.0, 0.0, 3.0], [200.0, 90.0, -90.0]], np.float32
    )
    logits = keras.ops.convert_to_numpy(DefectAndClass()(inputs)).astype(np.float64)
    np.testing.assert_allclose(np.exp(logits[0]), [0.5, 0.25, 0.25], rtol=1e-6)
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1.0, rtol=1e-6)
    log_odds = np.logaddexp(logits[:, 1], logits[:, 2]) - logits[:, 0]
    np.testing.assert_allclose(log_odds, inputs[:, 0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(logits[1, 1] - logits[1, 2], 10.0, rtol=1e-6)
