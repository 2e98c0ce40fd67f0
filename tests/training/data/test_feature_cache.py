"""Features are those of the encoder, computed once; where they lie changes no bit of them."""

import numpy as np
import pytest

from segdec.config import NetworkConfig
from training.config import AugmentationConfig, ExperimentConfig
from training.experiment_file import load_experiment

tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network  # noqa: E402
from training.data.array_cache import ArrayCache  # noqa: E402
from training.data.feature_cache import FeatureCache  # noqa: E402
from training.data.input_pipeline import InputPipeline  # noqa: E402
from training.data.reading_pool import ReadingPool  # noqa: E402
from training.data.run_data import load_run_data  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_pretrained  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

BATCH = 8
FLIPS = AugmentationConfig()


@pytest.fixture(scope="module")
def config(tiny_experiment, tiny_encoder, tiny_encoder_weights):
    config = load_experiment(tiny_experiment)
    network = NetworkConfig(
        encoder=tiny_encoder, adapter_width=4, feature_width=4, feature_kernel=3, decision_widths=(4,)
    )
    changes = {"network": network, "encoder_weights": str(tiny_encoder_weights), "augmentation": FLIPS}
    return config.model_copy(update={**changes, "batch_size": BATCH})


@pytest.fixture(scope="module")
def network(config):
    return build_initial_network(config, load_pretrained(config))


@pytest.fixture(scope="module")
def data(config):
    return load_run_data(config)


TARGETS = ("target", "weight", "label")


class CountingEncoder:
    """An encoder, and how often it was asked."""

    def __init__(self, features):
        self.asked = 0
        self._encode = features._encode
        features._encode = self

    def __call__(self, image):
        self.asked += 1
        return self._encode(image)


@pytest.fixture
def make(config, data, network):
    """Builds a pipeline of features, on a cache of that many MB, and what counts how many are computed."""

    def make(cache=None, threads=2, **changes):
        images = len(data.examples) * FLIPS.variants
        features = FeatureCache(network.encoder, data.shape, cache or ArrayCache(100), images)
        encoder = CountingEncoder(features)
        changed = config.model_copy(update=changes)
        pool = ReadingPool(threads)
        return InputPipeline(data.examples, data.shape, changed, pool, features), encoder

    return make


def collect(pipeline, *arguments):
    return list(pipeline.batches(*arguments).as_numpy_iterator())


def check_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name, strict=True)


def plain_pipeline(config, data):
    return InputPipeline(data.examples, data.shape, config, ReadingPool(2))


@pytest.mark.parametrize("mask_stride", [8, 1])
def test_features_are_those_of_the_flipped_images(config, data, make, network, mask_stride):
    """And targets are those that stand beside the images otherwise."""
    if mask_stride == 8:
        pipeline, _ = make()
    else:
        config = replace_network(config, mask_stride=1)
        network = build_network(config.network)
        features = FeatureCache(network.encoder, data.shape, ArrayCache(100), len(data.examples))
        pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(2), features)
    for ours, expected in zip(
        collect(pipeline, 1, 2, 5), collect(plain_pipeline(config, data), 1, 2, 5), strict=True
    ):
        features = network.encoder(expected.pop("image"), training=False)
        assert ours.keys() == features.keys() | expected.keys()
        check_equal({name: ours[name] for name in expected}, expected)
        for name, value in features.items():
            assert ours[name].dtype == np.float16
            np.testing.assert_allclose(ours[name], value, rtol=6e-4, atol=1e-5, err_msg=name)


def replace_network(config, **changes):
    return config.model_copy(update={"network": config.network.model_copy(update=changes)})


def test_each_form_of_an_image_is_computed_once(make, data):
    pipeline, encoder = make(threads=1)  # several may begin with the same one at a time
    collect(pipeline, 0, 0, 40)
    assert encoder.asked <= len(data.examples) * FLIPS.variants
    asked = encoder.asked
    assert asked > len(data.examples)  # several forms of each
    collect(pipeline, 0, 0, 40)
    assert encoder.asked == asked
    still, encoder = make(
        threads=1, augmentation=AugmentationConfig(flip_horizontal=False, flip_vertical=False)
    )
    for stage in range(3):
        collect(still, stage, 0, 20)
    assert encoder.asked == len(data.examples)


@pytest.mark.parametrize("kept", ["on disk", "not at all"])
def test_the_location_of_cached_features_changes_no_bit(make, tmp_path, kept):
    caches = {"on disk": ArrayCache(0, tmp_path, 100), "not at all": ArrayCache(0)}
    pipeline, encoder = make(caches[kept], threads=1)
    expected, all_kept = make(threads=1)
    for ours, theirs in zip(collect(pipeline, 2, 0, 12), collect(expected, 2, 0, 12), strict=True):
        check_equal(ours, theirs)
    assert (encoder.asked == all_kept.asked) == (kept == "on disk")
    assert encoder.asked == 12 * BATCH or kept != "not at all"


def test_examples_with_a_synthetic_defect_are_computed_each_time(make, config, data):
    """They are others each time; the rest is kept as ever."""
    changes = AugmentationConfig(synthetic=1.0)
    pipeline, encoder = make(threads=1, augmentation=changes)
    batches = collect(pipeline, 0, 0, 10)
    synthetic, kept = 10 * BATCH // 2, len(data.examples) * FLIPS.variants
    assert synthetic < encoder.asked <= synthetic + kept
    asked = encoder.asked
    for ours, theirs in zip(collect(pipeline, 0, 0, 10), batches, strict=True):
        check_equal(ours, theirs)
    assert encoder.asked == asked + synthetic
    plain = plain_pipeline(config.model_copy(update={"augmentation": changes}), data)
    for ours, theirs in zip(batches, collect(plain, 0, 0, 10), strict=True):
        check_equal({name: ours[name] for name in TARGETS}, {name: theirs[name] for name in TARGETS})


def test_feature_noise_replaces_a_synthetic_defect_in_cached_features(make, network):
    """A defect of its mask, and the features elsewhere are those of the photograph."""
    noise = {"augmentation": AugmentationConfig(synthetic=1.0, feature_noise=1.0)}
    pipeline, encoder = make(threads=1, **noise)
    (batch,) = collect(pipeline, 0, 0, 1)
    assert encoder.asked == BATCH
    names, seen = pipeline.global_batch(0, 1)
    check_equal({name: batch[name] for name in TARGETS}, {name: seen[name] for name in TARGETS})
    clean = network.encoder(seen["image"], training=False)
    for row, (name, label) in enumerate(zip(names, batch["label"], strict=True)):
        changed = [
            not np.allclose(batch[key][row], clean[key][row], rtol=6e-4, atol=1e-5) for key in sorted(clean)
        ]
        assert name.endswith("+ feature noise") == bool(label) == any(changed)
        assert bool(batch["target"][row].any()) == bool(label)
    assert batch["label"].tolist() == [1, 0] * (BATCH // 2)
    asked = encoder.asked
    (again,) = collect(pipeline, 0, 0, 1)
    check_equal(again, batch)
    assert encoder.asked == asked  # noise is added to what is kept


def test_a_shortage_of_the_cache_is_reported(network, data):
    def announce(images):
        return FeatureCache(network.encoder, data.shape, ArrayCache(1), images).describe_shortage()

    shapes = FeatureCache(network.encoder, data.shape, ArrayCache(1), 1).shapes.values()
    size = 2 * sum(int(np.prod(shape)) for shape in shapes) + data.shape[0] * data.shape[1]
    assert announce(10**6 // size) is None
    assert "Raise data.cache_mb" in announce(10**6 // size + 1)
    expected = f"of 100000 images, flips included, need {size / 10:.0f} MB; 1 MB are free"
    assert expected in announce(100_000)


@pytest.mark.parametrize(
    ("changes", "cached"),
    [
        ({}, True),
        ({"flip_horizontal": False, "synthetic": 0.5, "transplant": 0.5}, True),
        ({"rotate": True}, False),
        ({"blur_px": 0.1}, False),
    ],
)
def test_features_are_cached_with_flips_only(config, changes, cached):
    changed = config.model_copy(update={"augmentation": AugmentationConfig(**changes)})
    assert changed.caches_features == cached
    trained = changed.model_copy(update={"encoder_trainable": "top"})
    assert not trained.caches_features
    assert not ExperimentConfig(stages={"joint": {"steps": 1}}).caches_features
