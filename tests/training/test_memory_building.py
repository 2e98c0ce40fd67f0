"""The memory of good surface: choice of patches, usual distances, and a run on good photographs alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from segdec.errors import ConfigError, DatasetError
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.encoders import ENCODERS as ENCODER_ROWS
from segdec.engines import ENGINES
from segdec.engines.tensorflow import NetworkEngine
from segdec.export.model_export import check_parity, full_precision, write_engine
from segdec.network.encoder import load_application
from segdec.network.network import build_network
from training.evaluate import evaluate_run
from training.memory_building import USUAL_LOG_ODDS, build_memory, choose_coreset
from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def test_the_coreset_takes_the_farthest_patch_each_time():
    """On a line: from 0 the farthest is 10, then 4 (4 from 0), then 7."""
    line = np.array([0, 1, 10, 4, 7], np.float32)[:, None]
    assert choose_coreset(line, 4)[:, 0].tolist() == [0, 10, 4, 7]


def test_a_coreset_of_few_patches_repeats_them():
    line = np.array([0, 1], np.float32)[:, None]
    assert choose_coreset(line, 5)[:, 0].tolist() == [0, 1, 0, 1, 0]


def surface(random, *, defective=False, side=64):
    """A grey surface with noise; a defect is a bright square."""
    image = random.normal(120, 6, (side, side, 1))
    if defective:
        row, column = random.integers(16, side - 24, 2)
        image[row : row + 10, column : column + 10] += 90
    return image.clip(0, 255).astype(np.uint8)


def examples_of(images, labels):
    class Examples:
        def __getitem__(self, index):
            return SimpleNamespace(image=images[index])

    examples = Examples()
    examples.labels = labels
    return examples


@pytest.fixture(scope="module")
def network(tiny_encoder, tiny_encoder_weights):
    network = build_network(NetworkConfig(preset="mobilenet", encoder=tiny_encoder, memory=200))
    application = load_application(ENCODER_ROWS[tiny_encoder])
    application.load_weights(tiny_encoder_weights)
    for layer in network.backbone.layers:
        if layer.weights:
            layer.set_weights(application.get_layer(layer.name).get_weights())
    return network


def test_defects_score_above_good_surface(network):
    random = np.random.default_rng(1)
    good = [surface(random) for _ in range(12)]
    build_memory(network, examples_of([*good, surface(random, defective=True)], [0] * 12 + [1]), seed=0)
    score = lambda images: network(np.stack(images).astype(np.float32))["class_logits"][:, 1].numpy()  # noqa: E731
    unseen, defective = (score([surface(random, defective=kind) for _ in range(6)]) for kind in (False, True))
    assert unseen.max() < defective.min()
    assert abs(unseen.mean() - USUAL_LOG_ODDS) < 2  # standard deviations


def test_identical_photographs_give_finite_scores(network):
    image = surface(np.random.default_rng(1))
    build_memory(network, examples_of([image] * 3, [0] * 3), seed=0)
    outputs = network(image[None].astype(np.float32))
    assert np.isfinite(outputs["mask_logits"]).all()
    assert outputs["class_logits"][0, 1] < 0


def test_one_photograph_is_too_few(network):
    image = surface(np.random.default_rng(1))
    with pytest.raises(DatasetError, match=r"has 1 good examples\. Expected two or more"):
        build_memory(network, examples_of([image, image], [0, 1]), seed=0)


@pytest.fixture(scope="module")
def load(tiny_experiment, tiny_encoder, tiny_encoder_weights, toy_root, tmp_path_factory):
    """Loads the tiny experiment with a memory, on good photographs alone."""
    splits = tmp_path_factory.mktemp("good") / "splits.txt"
    lines = (toy_root / "splits.txt").read_text().splitlines(keepends=True)
    splits.write_text("".join(line for line in lines if "defect/" not in line or line.startswith("test")))
    flags = ["--network.encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    flags += ["--network.memory", "100", "--data.splits", str(splits), "--input.policy", "resize"]
    flags += ["--input.height", "64", "--input.width", "64"]
    steps = [word for stage in ("segment", "decision", "joint") for word in (f"--stages.{stage}.steps", "0")]
    return lambda folder, *more: load_experiment(
        tiny_experiment, ["--runs", str(folder), *flags, *steps, *more]
    )


def test_a_run_on_good_photographs_alone(load, tmp_path, capsys):
    """Without a step; thresholds come from good validation photographs, which the memory does not know."""
    run = Trainer(load(tmp_path)).run()
    result = run.result()
    assert "The threshold is based on" in capsys.readouterr().err
    assert 0 < result.model.thresholds.score < 1
    assert result.model.network.memory == 100
    evaluated = evaluate_run(run.path, "test")
    assert evaluated.rating.level != "useless" or "No stage trained" not in evaluated.rating.reason
    again = Trainer(load(tmp_path / "again")).run()
    for one, other in zip(run.network().get_weights(), again.network().get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("engine", ["tensorflow", "openvino"])
def test_engines_agree_with_the_network(network, engine, tmp_path):
    pytest.importorskip(engine)
    random = np.random.default_rng(1)
    build_memory(network, examples_of([surface(random) for _ in range(6)], [0] * 6), seed=0)
    write_engine(engine, network, tmp_path / engine, [])
    loaded, reference = ENGINES[engine].load(tmp_path / engine), NetworkEngine(network)
    for sides in ((64, 64), (8, 8), (40, 88)):
        images = random.integers(0, 256, (2, *sides, 1), dtype=np.uint8)
        images[0] = surface(random, side=max(sides))[: sides[0], : sides[1]]
        expected, found = reference.infer(images), loaded.infer(images)
        np.testing.assert_allclose(found.mask, expected.mask, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.classes, expected.classes, rtol=1e-4, atol=1e-4)
    with full_precision():
        config = ModelConfig(network=network.config, input=InputConfig(), classes=("good", "defect"))
        check_parity(reference, loaded, config, (64, 64))


def test_int8_is_refused(network, tmp_path):
    pytest.importorskip("openvino")
    with pytest.raises(ConfigError, match="int8 hides defects"):
        write_engine("openvino-int8", network, tmp_path / "int8", [surface(np.random.default_rng(1))])
