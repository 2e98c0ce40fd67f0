"""Features are those of the encoder, computed once; where they lie changes no bit of them."""

import copy

import numpy as np
import pytest

from segdec.config import NetworkConfig
from training.config import AugmentationConfig, ExperimentConfig
from training.experiment_file import load_experiment

tf = pytest.importorskip("tensorflow")

from training.data.array_cache import ArrayCache  # noqa: E402
from training.data.augmentation import rotations_keeping_size  # noqa: E402
from training.data.feature_cache import FeatureCache  # noqa: E402
from training.data.input_pipeline import InputPipeline  # noqa: E402
from training.data.reading_pool import ReadingPool  # noqa: E402
from training.data.run_data import load_run_data  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_pretrained  # noqa: E402

BATCH = 4


@pytest.fixture(scope="module")
def config(tiny_experiment, tiny_encoder, tiny_encoder_weights):
    config = load_experiment(tiny_experiment)
    network = NetworkConfig(
        encoder=tiny_encoder, adapter_width=4, feature_width=4, feature_kernel=3, decision_widths=(4,)
    )
    changes = {
        "network": network,
        "encoder_weights": str(tiny_encoder_weights),
        "augmentation": AugmentationConfig(),
    }
    return config.model_copy(update={**changes, "batch_size": BATCH})


@pytest.fixture(scope="module")
def network(config):
    return build_initial_network(config, load_pretrained(config))


@pytest.fixture(scope="module")
def data(config):
    return load_run_data(config)


@pytest.fixture(scope="module")
def make(config, data, network):
    """Builds a pipeline of features on a cache, and a list that grows with each feature computed."""
    shared = FeatureCache(network.encoder, data.shape, ArrayCache(0), 1)

    def make(cache=None, **changes):
        features, computed = copy.copy(shared), []
        features._cache = cache or ArrayCache(100)
        features._encode = lambda image: computed.append(1) or shared._encode(image)
        changed = config.model_copy(update=changes)
        # Two threads may begin with the same image at a time.
        return InputPipeline(data.examples, data.shape, changed, ReadingPool(1), features), computed

    return make


def collect(pipeline, *arguments):
    return list(pipeline.batches(*arguments).as_numpy_iterator())


def check_equal(ours, theirs, names=None):
    assert names or ours.keys() == theirs.keys()
    for name in names or theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name, strict=True)


TARGETS = ("target", "weight", "label", "has_boxes")


def check_flipped_features(features, image, encode):
    """Checks that they are the features of the image that was flipped to `image`, flipped in the same way."""
    fitting = []
    for axes in ((), (0,), (1,), (0, 1)):
        original = encode(np.flip(image, axes)[None])
        assert features.keys() == original.keys()
        expected = {name: np.flip(value[0], axes) for name, value in original.items()}
        fitting.append(
            all(np.allclose(features[name], value, rtol=6e-4, atol=1e-5) for name, value in expected.items())
        )
    assert any(fitting)
    assert all(value.dtype == np.float16 for value in features.values())


@pytest.mark.slow
def test_features_are_flipped_wherever_they_are_stored(config, data, make, network, tmp_path):
    """Their targets are those of the images."""
    kept, on_disk, computed_anew = (
        make(cache)[0] for cache in (None, ArrayCache(0, tmp_path, 100), ArrayCache(0))
    )
    plain = InputPipeline(data.examples, data.shape, config, ReadingPool(2))
    encode = tf.function(lambda images: network.encoder(images, training=False))
    pipelines = (kept, on_disk, computed_anew, plain)
    for ours, *others, expected in zip(*(collect(one, 1, 2, 5) for one in pipelines), strict=True):
        for other in others:
            check_equal(other, ours)
        check_equal(ours, expected, TARGETS)
        for row, image in enumerate(expected["image"]):
            check_flipped_features(
                {name: ours[name][row] for name in ours if name not in TARGETS}, image, encode
            )


def test_each_image_is_computed_once(make, data, tmp_path):
    pipeline, computed = make(ArrayCache(0, tmp_path, 100))
    collect(pipeline, 0, 0, 40)
    asked = len(computed)
    assert asked == len(data.examples)
    collect(pipeline, 0, 0, 40)
    assert len(computed) == asked


def test_rotated_images_are_computed_once_for_each_angle(config, data, make):
    changes = AugmentationConfig(rotate=True)
    pipeline, computed = make(augmentation=changes)
    batches = collect(pipeline, 0, 0, 100)
    assert len(data.examples) < len(computed) <= len(data.examples) * len(rotations_keeping_size(data.shape))
    plain = InputPipeline(
        data.examples, data.shape, config.model_copy(update={"augmentation": changes}), ReadingPool(2)
    )
    for ours, expected in zip(batches, collect(plain, 0, 0, 100), strict=True):
        check_equal(ours, expected, TARGETS)


def test_stored_features_are_found_by_the_image(make, data, monkeypatch):
    pipeline, computed = make()
    features = pipeline._features
    features._needed = 0
    assert len(list(pipeline.encode())) == len(computed) == len(data.examples)
    image = data.examples[2].image
    stored = features.get((2, 0), lambda: pytest.fail("was not stored"))
    monkeypatch.setattr(features, "compute", lambda arrays: {"computed": arrays["image"]})
    assert features.find(image) is stored
    np.testing.assert_array_equal(features.find(255 - image)["computed"], 255.0 - image)


def test_examples_with_a_synthetic_defect_are_computed_each_time(make, config, data):
    changes = AugmentationConfig(synthetic=1.0)
    pipeline, computed = make(augmentation=changes)
    batches = collect(pipeline, 0, 0, 4)
    synthetic = 4 * BATCH // 2
    asked = len(computed)
    assert synthetic < asked
    plain = InputPipeline(
        data.examples, data.shape, config.model_copy(update={"augmentation": changes}), ReadingPool(2)
    )
    for again, first, theirs in zip(
        collect(pipeline, 0, 0, 4), batches, collect(plain, 0, 0, 4), strict=True
    ):
        check_equal(again, first)
        check_equal(first, theirs, TARGETS)
    assert len(computed) == asked + synthetic


def test_feature_noise_replaces_a_synthetic_defect_in_cached_features(make, network):
    """A defect of its mask, and the features elsewhere are those of the photograph."""
    unflipped = {"flip_horizontal": False, "flip_vertical": False}
    pipeline, computed = make(augmentation=AugmentationConfig(synthetic=1.0, feature_noise=1.0, **unflipped))
    (batch,) = collect(pipeline, 0, 0, 1)
    assert len(computed) == BATCH
    names, seen = pipeline.global_batch(0, 1)
    check_equal(batch, seen, TARGETS)
    clean = network.encoder(seen["image"], training=False)
    for row, (name, label) in enumerate(zip(names, batch["label"], strict=True)):
        changed = any(
            not np.allclose(batch[key][row], clean[key][row], rtol=6e-4, atol=1e-5) for key in clean
        )
        assert name.endswith("+ feature noise") == bool(label) == changed == bool(batch["target"][row].any())
    assert batch["label"].tolist() == [1, 0] * (BATCH // 2)
    (again,) = collect(pipeline, 0, 0, 1)
    check_equal(again, batch)
    assert len(computed) == BATCH  # noise is added to what is kept


def test_a_shortage_of_the_cache_is_reported(network, data):
    def announce(images):
        return FeatureCache(network.encoder, data.shape, ArrayCache(1), images).describe_shortage()

    shapes = FeatureCache(network.encoder, data.shape, ArrayCache(1), 1).shapes.values()
    size = 2 * sum(int(np.prod(shape)) for shape in shapes) + data.shape[0] * data.shape[1]
    assert announce(10**6 // size) is None
    assert "Raise data.cache_mb" in announce(10**6 // size + 1)
    expected = f"of 100000 images need {size / 10:.0f} MB; 1 MB are free"
    assert expected in announce(100_000)


@pytest.mark.parametrize(
    ("changes", "cached"),
    [
        ({}, True),
        ({"flip_horizontal": False, "rotate": True, "synthetic": 0.5}, True),
        ({"blur_px": 0.1}, False),
    ],
)
def test_features_are_cached_with_flips_and_rotations_only(config, changes, cached):
    changed = config.model_copy(update={"augmentation": AugmentationConfig(**changes)})
    assert changed.caches_features == cached
    assert not changed.model_copy(update={"encoder_trainable": "top"}).caches_features
    assert not ExperimentConfig(stages={"joint": {"steps": 1}}).caches_features
