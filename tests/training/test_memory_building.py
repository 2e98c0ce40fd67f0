"""The memory of good surface: choice of patches, usual distances, and a run on good photographs alone."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from segdec.errors import DatasetError
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

import keras
import tensorflow as tf

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import ENGINES
from segdec.engines.tensorflow import NetworkEngine
from segdec.export.model_export import check_parity, full_precision, write_engine
from segdec.network.folding import fold_network
from segdec.network.network import build_network
from segdec.network.surface_memory import PATCHES
from segdec.photograph_check import SURFACE
from segdec.photograph_reasons import PART, find_reason
from tests.marks import slow_case
from tests.tiny_encoder import load_encoder
from training.evaluate import evaluate_run
from training.memory_building import BORDER, USUAL_LOG_ODDS, build_memory, choose_coreset, find_outliers
from training.photograph_limits import choose_limits, measure_with
from training.trainer import Trainer


def test_the_coreset_takes_the_farthest_patch_each_time():
    """On a line: from 0 the farthest is 10, then 4 (4 from 0), then 7."""
    line = np.array([0, 1, 10, 4, 7], np.float32)[:, None]
    assert choose_coreset(line, 4).tolist() == [0, 2, 3, 4]


def test_a_coreset_starts_with_those_that_are_kept():
    """From 1 and 4 the farthest is 10; then 7 (3 from both)."""
    line = np.array([0, 1, 10, 4, 7], np.float32)[:, None]
    assert choose_coreset(line, 4, kept=[1, 3]).tolist() == [1, 3, 2, 4]


def test_a_coreset_of_few_patches_repeats_them():
    line = np.array([0, 1], np.float32)[:, None]
    assert choose_coreset(line, 5).tolist() == [0, 1, 0, 1, 0]


def test_a_coreset_of_many_patches_is_the_greedy_one():
    patches = np.random.default_rng(1).normal(size=(2000, 8)).astype(np.float32)
    nearest, chosen = np.full(2000, np.inf), [7]
    while len(chosen) < 700:
        nearest = np.minimum(nearest, np.square(patches - patches[chosen[-1]]).sum(axis=1))
        chosen.append(9 if len(chosen) == 1 else int(nearest.argmax()))
    assert choose_coreset(patches, 700, kept=[7, 9]).tolist() == chosen


def surface(random, *, defective=False, side=64):
    """A grey surface with noise; a defect is a bright square."""
    image = random.normal(120, 6, (side, side, 1))
    if defective:
        row, column = random.integers(16, side - 24, 2)
        image[row : row + 10, column : column + 10] += 90
    return image.clip(0, 255).astype(np.uint8)


@cache
def compiled(network):
    return tf.function(network, reduce_retracing=True)


def run(network, images):
    """Returns the outputs for images of one size."""
    return compiled(network)(np.stack(images).astype(np.float32))


def scores(network, images):
    return run(network, images)["class_logits"][:, 1].numpy()


def build(network, images, labels=None, *, rotate=False):
    """Builds the memory from images, in turns of the three folds.

    Returns the encoded ones, and the indices of those that are far less like the others than usual.
    """
    encoded = []

    class Examples:
        def __getitem__(self, index):
            return SimpleNamespace(image=images[index])

        def fold(self, index):
            return index % 3 + 1

    examples = Examples()
    examples.labels = labels or [0] * len(images)

    def encode(image):
        encoded.append(image)
        return {name: one[0].numpy() for name, one in run(network.encoder, [image]).items()}

    return encoded, build_memory(network, examples, encode, seed=0, rotate=rotate)


@pytest.fixture(scope="module")
def network(tiny_mobilenet):
    encoder, weights = tiny_mobilenet
    network = build_network(NetworkConfig(preset="mobilenet", encoder=encoder, heads=0, memory=200))
    load_encoder(network, weights)
    return network


def test_defects_score_above_good_surface(network):
    random = np.random.default_rng(1)
    good = [surface(random) for _ in range(12)]
    build(network, [*good, surface(random, defective=True)], [0] * 12 + [1])
    unseen, defective = (
        scores(network, [surface(random, defective=kind) for _ in range(6)]) for kind in (False, True)
    )
    assert unseen.max() < defective.min()
    assert abs(unseen.mean() - USUAL_LOG_ODDS) < 2  # standard deviations


def test_defective_photographs_among_many_good_ones_are_found(network):
    random = np.random.default_rng(1)
    images = [surface(random) for _ in range(63)]
    assert build(network, images)[1] == []
    for index, rows in ((10, 16), (31, 24), (62, 32)):
        images[index][8 : 8 + rows, 16:48] //= 2
    assert build(network, images)[1] == [10, 31, 62]


def test_small_variances_count_less_in_wide_patches(network, monkeypatch):
    random = np.random.default_rng(1)
    images = [surface(random) for _ in range(12)]
    scales = []
    for narrow in (96, 95):
        monkeypatch.setattr("training.surface_patches.MIN_WIDTH", narrow)
        build(network, images)
        kernels = [network.memory.get_layer(f"{PATCHES}_{stride}").get_weights()[0] for stride in (8, 16)]
        scales.append(np.linalg.norm(np.concatenate(kernels), axis=0)[:20])
    ratio = scales[0] / scales[1]
    assert ratio[0] > 1 and (np.diff(ratio) > -1e-4).all()


def test_photographs_far_above_the_usual_deviation_are_unlike_the_others():
    """By hand: median 1; its median absolute deviation is 1, so a robust standard deviation is 1.48."""
    usual = [0, 1, 2] * 7
    assert find_outliers(np.array([*usual, 8, 9])).tolist() == [False] * 22 + [True]
    assert not find_outliers(np.array([*usual[:17], 9])).any()
    assert not find_outliers(np.array([*usual, *range(20, 26)])).any()


@pytest.mark.parametrize("image", [surface(np.random.default_rng(1)), np.full((64, 64, 1), 99, np.uint8)])
def test_identical_photographs_give_finite_scores(network, image):
    build(network, [image] * 3)
    outputs = run(network, [image])
    assert np.isfinite(outputs["mask_logits"]).all()
    assert outputs["class_logits"][0, 1] < 0


@pytest.mark.parametrize("side", [8, 8 * BORDER])
def test_photographs_smaller_than_two_borders_have_a_memory(network, side):
    """One has a single cell, the other no cell farther from all sides than the border."""
    random = np.random.default_rng(1)
    build(network, [surface(random, side=side) for _ in range(6)])
    outputs = run(network, [surface(random, side=side)])
    assert outputs["mask_logits"].shape[1:3] == (side // 8, side // 8)
    assert np.isfinite(outputs["mask_logits"]).all() and np.isfinite(outputs["class_logits"]).all()


def test_each_fold_needs_a_photograph(network):
    image = surface(np.random.default_rng(1))
    with pytest.raises(DatasetError, match=r"have 1, 1, 0 good examples\. Expected some in each"):
        build(network, [image] * 3, [0, 0, 1])


@pytest.mark.slow
def test_without_a_fold_its_photographs_are_unknown(network):
    """Photographs are nearer to the whole memory than to that without their fold."""
    random = np.random.default_rng(1)
    images = [surface(random) for _ in range(9)]
    build(network, images)
    memories = [network.without_fold(fold) for fold in range(3)]
    own = np.concatenate([scores(memories[fold], images[fold::3]) for fold in range(3)])
    assert np.mean(own) > np.mean(scores(network, images)) + 1
    assert abs(np.mean(own) - USUAL_LOG_ODDS) < 1e-3
    assert np.std(own, ddof=1) == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("height", "copies"), [(64, 3), (40, 1)])
def test_rotated_copies_that_keep_the_size_are_remembered(network, height, copies):
    random = np.random.default_rng(1)
    images = [surface(random)[:height] for _ in range(9)]
    encoded, _ = build(network, images, rotate=True)
    assert len(encoded) == 9 * (1 + 1 + copies)  # for the projection, as they are, and rotated
    assert {image.shape for image in encoded} == {(height, 64, 1)}
    rotated = [np.rot90(image, 2) for image in images]
    known = np.mean(scores(network, rotated))
    build(network, images)
    assert known < np.mean(scores(network, rotated))


def test_another_texture_is_recognised_by_the_surface_alone(network):
    random = np.random.default_rng(1)
    build(network, [surface(random) for _ in range(9)])
    infer = NetworkEngine(network).infer
    measured = [measure_with(infer, surface(random)) for _ in range(40)]
    all_limits = choose_limits(measured, [str(number) for number in range(40)])
    limits = all_limits.model_copy(update={"measures": {SURFACE: all_limits.measures[SURFACE]}})

    def reason(image):
        own = measure_with(infer, image)
        return find_reason(limits, own, limits.distances(own))

    for _ in range(5):
        assert reason(surface(random)) is None
        assert reason(surface(random, defective=True)) is None
    stripes = np.where(np.arange(64) % 8 < 4, 100, 140)[None, :, None] + random.normal(0, 6, (64, 64, 1))
    assert reason(stripes.astype(np.uint8)) == PART


@pytest.fixture(scope="module")
def load(tiny_experiment, tiny_encoder, tiny_encoder_weights, toy_root, tmp_path_factory):
    """Loads the tiny experiment with a memory, on good photographs alone, in folds."""
    splits = tmp_path_factory.mktemp("good") / "splits.txt"
    lines = (toy_root / "splits.txt").read_text().splitlines(keepends=True)
    splits.write_text("".join(line for line in lines if "defect/" not in line or line.startswith("test")))
    flags = ["--network.encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    flags += [
        "--network.heads",
        "0",
        "--network.memory",
        "100",
        "--data.splits",
        str(splits),
        "--input.policy",
        "resize",
    ]
    flags += ["--input.height", "64", "--input.width", "64"]
    steps = [word for stage in ("segment", "decision", "joint") for word in (f"--stages.{stage}.steps", "0")]
    return lambda folder, *more: load_experiment(
        tiny_experiment, ["--runs", str(folder), *flags, *steps, *more]
    )


@pytest.fixture(scope="module")
def run_on_good(load, tmp_path_factory):
    """It is without a step."""
    return Trainer(load(tmp_path_factory.mktemp("good_runs"))).run()


def test_a_run_on_good_photographs_alone(run_on_good):
    """Thresholds come from all photographs, each scored without its fold."""
    run = run_on_good
    result, items = run.result(), run.items("train")
    assert any("The threshold is based on" in warning for warning in result.warnings)
    assert 0 < result.model.thresholds.score < 1
    assert result.model.thresholds.mask == pytest.approx(result.model.thresholds.score)
    assert (result.model.thresholds.mask_share, result.model.thresholds.refine_mask) == (0.4, True)
    assert "each scored by a network built without it" in result.chosen_by
    assert len(result.scored.labels) == len(items) and {one.fold for one in items} == {1, 2, 3}
    assert run.compared_split == "test"
    assert len(result.training_photographs.limits.measures[SURFACE].centre) == 96
    (own, *_) = run.parts("train")
    assert own[0].config == result.model and {one.fold for one in own[1]} == {1}


@pytest.mark.slow
def test_a_run_on_good_photographs_alone_is_repeatable_and_evaluated(
    load, run_on_good, tmp_path, monkeypatch, capsys
):
    assert evaluate_run(run_on_good.path, "train").rating.level == "not measurable"
    evaluated = evaluate_run(run_on_good.path, "test")
    assert evaluated.rating.level != "useless" or "No stage trained" not in evaluated.rating.reason
    found = [0, 2, 3, 5]
    monkeypatch.setattr(
        "training.trainer.build_memory", lambda *given, **options: [*build_memory(*given, **options), *found]
    )
    again = Trainer(load(tmp_path)).run()
    for one, other in zip(run_on_good.network().get_weights(), again.network().get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    names = [run_on_good.items("train")[index].name for index in found]
    note = f"less like the others than usual: 4 ({', '.join(names)}). Look at them."
    assert note in again.result().warnings[0] and note in capsys.readouterr().err


@pytest.fixture(scope="module")
def beside_heads(tiny_encoder):
    """A network with two heads and a memory of random patches, whose seed also gives those of its encoder."""
    keras.utils.set_random_seed(3)
    config = NetworkConfig(preset="mobilenet", encoder=tiny_encoder, heads=2, memory=20)
    network = build_network(config)
    network.combination.set_combination(np.array([0.5, 0.25, 0.125]), 0.75)
    return network


@pytest.mark.slow
def test_int8_does_not_move_the_mean_patch(beside_heads, tmp_path):
    pytest.importorskip("nncf")
    images = np.random.default_rng(1).integers(0, 256, (4, 40, 88, 1), dtype=np.uint8)
    write_engine("openvino-int8", beside_heads, tmp_path / "int8", list(images))
    expected = NetworkEngine(beside_heads).infer(images).surface
    distances = ENGINES["openvino-int8"].load(tmp_path / "int8").infer(images).surface
    errors = distances - expected
    assert np.abs(errors.mean(axis=0)).max() < 0.1 * np.abs(errors).max()


@pytest.mark.slow
def test_int8_keeps_the_memory_in_float(beside_heads):
    pytest.importorskip("openvino")
    from segdec.export.openvino_model import _convert, _float32_operations

    model = _convert(fold_network(beside_heads), [])
    kept = _float32_operations(model, beside_heads.config)
    kernels = {
        node.get_friendly_name(): tuple(node.get_input_partial_shape(1))
        for node in model.get_ops()
        if node.get_type_name() == "Convolution"
    }
    (nearest,) = (name for name, kernel in kernels.items() if kernel[0] == beside_heads.config.memory)
    assert nearest in kept and len(kept) < len(model.get_ops())


@pytest.mark.slow
@pytest.mark.parametrize("engine", [slow_case("tensorflow"), "openvino"])
def test_engines_agree_with_the_network(network, engine, tmp_path):
    pytest.importorskip(engine)
    random = np.random.default_rng(1)
    build(network, [surface(random) for _ in range(6)])
    write_engine(engine, network, tmp_path / engine, [])
    loaded, reference = ENGINES[engine].load(tmp_path / engine), NetworkEngine(network)
    for sides in ((64, 64), (8, 8), (40, 88)):
        images = random.integers(0, 256, (2, *sides, 1), dtype=np.uint8)
        images[0] = surface(random, side=max(sides))[: sides[0], : sides[1]]
        expected, inferred = reference.infer(images), loaded.infer(images)
        np.testing.assert_allclose(inferred.mask, expected.mask, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(inferred.classes, expected.classes, rtol=1e-4, atol=1e-4)
    with full_precision():
        config = ModelConfig(network=network.config, input=InputConfig(), classes=("good", "defect"))
        check_parity(reference, loaded, config, (64, 64))


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("engine", ["openvino-int8", "openvino-bfloat16", "tensorflow-bfloat16"])
def test_reduced_precision_finds_the_same_defects(tiny_mobilenet, engine, channels, tmp_path):
    pytest.importorskip("nncf" if engine.endswith("int8") else ENGINES[engine].package)
    encoder, weights = tiny_mobilenet
    config = NetworkConfig(preset="mobilenet", encoder=encoder, heads=0, memory=200, input_channels=channels)
    network = build_network(config)
    load_encoder(network, weights)
    random, tint = np.random.default_rng(1), np.array([1.0, 0.8, 0.6][:channels])
    good, defective = (
        [(surface(random, defective=kind) * tint).astype(np.uint8) for _ in range(8)]
        for kind in (False, True)
    )
    build(network, good)
    write_engine(engine, network, tmp_path / "engine", good)
    images = np.stack([*good, *defective])
    exact, found = (
        NetworkEngine(network).infer(images),
        ENGINES[engine].load(tmp_path / "engine").infer(images),
    )
    threshold = (exact.classes[:8, 1].max() + exact.classes[8:, 1].min()) / 2
    assert found.classes[:8, 1].max() < threshold < found.classes[8:, 1].min()
    marked, expected = found.mask > threshold, exact.mask > threshold
    least = 0.8 if engine.endswith("int8") else 0.95
    assert np.sum(marked & expected) > least * np.sum(marked | expected)
