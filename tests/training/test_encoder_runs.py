"""Runs whose network stands on a pretrained encoder."""

import json
import shutil

import numpy as np
import pytest

from datasets.layouts.toy import write_toy
from segdec.encoders import ENCODERS
from segdec.errors import ConfigError, RunError
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from segdec.engines.tensorflow import NetworkEngine
from segdec.network.score_combination import UNUSUAL_LOG_ODDS
from segdec.predictor import Predictor
from training.data.feature_cache import FeatureCache
from training.data.fold_engine import FoldEngine
from training.data.run_data import item_reader
from training.metrics.evaluation import evaluate
from training.run.folder import RunFolder
from training.run.records import ENCODERS_FILE
from training.schedule_control import ScheduleControl
from training.trainer import Trainer

pytestmark = pytest.mark.slow


JOINT_ALONE = ("--stages.segment.steps", "0", "--stages.decision.steps", "0")


@pytest.fixture(scope="module")
def load(tiny_experiment, tiny_encoder, tiny_encoder_weights):
    """Loads the tiny experiment on features of the tiny encoder; images are flipped at most."""
    flags = ["--network.encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    flags += [
        word
        for name in ("brightness", "contrast", "shift", "noise")
        for word in (f"--augmentation.{name}", "0")
    ]
    steps = [word for stage in ("segment", "decision", "joint") for word in (f"--stages.{stage}.steps", "3")]
    return lambda folder, *more: load_experiment(
        tiny_experiment, ["--runs", str(folder), *flags, *steps, *more]
    )


@pytest.fixture(scope="module")
def run(load, tmp_path_factory):
    """The experiment, trained to its end on cached features."""
    return Trainer(load(tmp_path_factory.mktemp("encoder_runs"))).run()


def test_the_encoder_ends_as_it_began(run, tiny_encoder, tiny_encoder_weights, read_checkpoint):
    """Checkpoints hold neither the encoder nor an average of it nor its best."""
    from segdec.network.encoder import load_application

    began, network = load_application(ENCODERS[tiny_encoder]), run.network()
    began.load_weights(tiny_encoder_weights)
    layers = [layer for layer in network.backbone.layers if layer.weights]
    assert len(layers) == 2 * (1 + 2 * 3)  # the first convolution, two in each block; each is normalised
    for layer in layers:
        expected = began.get_layer(layer.name).get_weights()
        for ours, theirs in zip(layer.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=layer.name)
    origin = run.result().encoder
    assert (origin.encoder, origin.weights, origin.trainable) == (tiny_encoder, "tiny.weights.h5", "frozen")
    assert json.loads((run.path / "encoder.json").read_text()) == origin.model_dump()
    kept = sum(array.size for array in read_checkpoint(run.path).values())
    trained = network.count_params() - network.backbone.count_params()
    assert 3 * trained < kept < 8 * trained  # weights, averages, best ones, two moments of Adam a stage


def test_another_file_of_weights_is_refused(load, tiny_encoder_weights, tmp_path):
    """The same one may lie elsewhere, as the photographs may."""
    Trainer(load(tmp_path)).folder.close()
    moved = tmp_path / "moved.weights.h5"
    shutil.copy(tiny_encoder_weights, moved)
    trainer = Trainer(load(tmp_path, "--encoder-weights", str(moved)))
    trainer.folder.close()
    assert trainer.folder.encoder().weights == "tiny.weights.h5"

    import h5py

    with h5py.File(moved, "a") as file:
        file["layers"]["conv2d"]["vars"]["0"][0, 0, 0, 0] += 0.5
    changed = load(tmp_path, "--encoder-weights", str(moved))
    with pytest.raises(RunError, match=r"started from weights with SHA-256 \w{64}; now .* SHA-256 .*--fresh"):
        Trainer(changed)
    Trainer(changed, fresh=True).folder.close()
    assert RunFolder(tmp_path / "tiny").encoder().weights == "moved.weights.h5"


def test_a_trained_encoder_continues_where_it_was(load, tmp_path, interrupt_run, check_same_run):
    """Its checkpoint holds only what is trained of it; light changes."""
    flags = ["--encoder-trainable", "top", "--augmentation.brightness", "0.1", *JOINT_ALONE]
    whole = Trainer(load(tmp_path / "whole", *flags)).run().path
    config = load(tmp_path / "cut", *flags)
    interrupt_run(config, 3)
    check_same_run(Trainer(config).run().path, whole)


# === Heads on folds ===

HEADS = (
    *("--network.heads", "2", "--network.memory", "30"),
    *("--network.standardize-features", "--network.linear-mask", "--network.pooled-score"),
)
TWO_STAGES = ("--stages.decision.steps", "0")


@pytest.fixture(scope="module", autouse=True)
def few_linear_steps():
    """The linear masks are 0 after the last checkpoint from which a run with heads resumes."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("linear_mask", "trainer"):
            patch.setattr(f"training.{module}.LINEAR_STEPS", 5)
        yield


@pytest.fixture(scope="module")
def load_heads(load, toy_root, tmp_path_factory):
    """The experiment with heads, without validation and test."""
    splits = tmp_path_factory.mktemp("splits") / "splits.txt"
    lines = (line.split()[1] for line in (toy_root / "splits.txt").read_text().splitlines() if line[0] != "#")
    splits.write_text("".join(f"train {name}\n" for name in lines))
    return lambda folder, *more: load(folder, *HEADS, *TWO_STAGES, "--data.splits", str(splits), *more)


@pytest.fixture(scope="module")
def heads_run(load_heads, tmp_path_factory):
    return Trainer(load_heads(tmp_path_factory.mktemp("heads"))).run()


def test_every_photograph_is_scored_by_the_head_that_was_trained_without_it(heads_run):
    from training.evaluate import evaluate_run
    from training.metrics.storage import load_evaluation

    items, network, result = heads_run.items("train"), heads_run.network(), heads_run.result()
    assert {item.fold for item in items} == {1, 2}
    assert len(result.scored.labels) == len(items)
    assert "each scored by a network built without it" in result.chosen_by
    assert network.combination.unusual.numpy() == UNUSUAL_LOG_ODDS
    assert all(np.any(kernel) for kernel, _ in network.pooled_score.maps)
    (heads_run.path / ENCODERS_FILE).write_text("encoder     tiny: the fastest\n            tiny  AP 0.9\n")
    summary = evaluate_run(heads_run.path, "train")
    assert "out-of-fold photographs" in summary.rating.reason
    report = (heads_run.path / "report.html").read_text(encoding="utf-8")
    assert "Each photograph was scored by a network built without it" in report
    assert "encoder tiny: the fastest tiny AP 0.9" in report
    results = {each.name: each for each in load_evaluation(heads_run.path).results}
    assert results.keys() == {item.name for item in items}
    read = item_reader(heads_run.experiment())
    for item in (items[0], items[-1]):
        predictor = Predictor(NetworkEngine(network.without_fold(item.fold - 1)), result.model)
        assert results[item.name].score == pytest.approx(
            predictor.predict([read(item).image])[0].score, rel=1e-4
        )
        assert results[item.name].split == f"fold_{item.fold}"


def test_a_training_that_saves_time_omits_the_last_validation(load_heads, tmp_path, monkeypatch):
    """With a memory, the thresholds come from later scores, which need the features of all examples."""
    computed, before_the_steps = [], []

    class SavingControl(ScheduleControl):
        saves_time = True

    def fail():
        raise AssertionError("validated")

    config = load_heads(tmp_path, "--validate-every", "1000", *JOINT_ALONE)
    trainer, compute = Trainer(config, control=SavingControl()), FeatureCache.compute
    monkeypatch.setattr(FeatureCache, "compute", lambda *own: computed.append(own) or compute(*own))
    monkeypatch.setattr(trainer, "_fit_linear_masks", lambda *_: before_the_steps.append(len(computed)))
    monkeypatch.setattr(trainer.validator, "measure", fail)
    run = trainer.run()
    assert before_the_steps == [len(run.items("train"))]
    assert trainer.state.best.numpy()[0] == 3  # the last step
    assert len(run.result().scored.labels) == len(run.items("train"))
    monkeypatch.setattr(FoldEngine, "infer", lambda *_: pytest.fail("computed again"))
    parts = trainer.validator.parts_with(run.result().model)
    assert len(evaluate(parts, item_reader(config), resamples=0).results) == len(run.items("train"))


def test_a_run_with_heads_resumes_where_it_was(
    load_heads, heads_run, tmp_path, interrupt_run, check_same_run, capsys
):
    """And the size of the cache changes no bit."""
    config = load_heads(tmp_path, "--data.cache-mb", "0")
    interrupt_run(config, 6)
    capsys.readouterr()
    check_same_run(Trainer(config).run().path, heads_run.path)
    assert capsys.readouterr().err.count("warning: The encoder's features of") == 1


def test_versions_are_compared_out_of_fold(heads_run):
    from training.evaluate import evaluate_run
    from training.retrain.comparison import compare_with_parent, evaluate_parent

    assert heads_run.compared_split == "train"
    evaluate_run(heads_run.path, "train")
    evaluate_parent(heads_run, heads_run)
    by_set, verdict = compare_with_parent(heads_run, heads_run)
    assert list(by_set) == ["the former train photographs"]
    assert by_set["the former train photographs"].photographs == len(heads_run.items("train"))
    assert verdict == "not worse"


def test_the_exported_mean_of_the_heads_agrees_on_every_engine(heads_run, tmp_path):
    from training.export import ExportOptions, export_run

    pytest.importorskip("openvino")
    options = ExportOptions(engines=("tensorflow", "openvino"))
    manifest = export_run(heads_run.path, tmp_path / "model", options)
    assert manifest.network.heads == 2
    assert [one.verification.decisions_changed for one in manifest.variants.values()] == [0, 0]


@pytest.fixture(scope="module")
def three_kinds(tmp_path_factory):
    """Flags of a toy set with three classes of defects, all of it for training."""
    root = tmp_path_factory.mktemp("classes") / "toy"
    write_toy(root, 24, size=32, classes=4)
    lines = (root / "splits.txt").read_text().splitlines()
    splits = root.parent / "splits.txt"
    splits.write_text("".join(f"train {line.split()[1]}\n" for line in lines if line[0] != "#"))
    return "--data.root", str(root), "--data.splits", str(splits)


@pytest.mark.parametrize(
    "memory", [(), ("--network.memory", "0", "--no-network.pooled-score")], ids=["memory", "no memory"]
)
def test_the_classes_of_defects_are_fitted_after_the_training(load_heads, three_kinds, tmp_path, memory):
    """Scores and masks are those of the same run without them."""
    networks, results = [], []
    for number, more in enumerate(((), ("--network.pooled-classes",))):
        flags = (*three_kinds, *JOINT_ALONE, *memory, *more)
        run = Trainer(load_heads(tmp_path / str(number), *flags)).run()
        networks.append([run.network(), *map(run.network().without_fold, (0, 1))])
        results.append(run.result())
    assert networks[1][0].pooled_classes.decided_share == 0
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 1)).astype(np.float32)
    for pair in zip(*networks, strict=True):
        plain, pooled = (network(images) for network in pair)
        np.testing.assert_array_equal(plain["mask_logits"], pooled["mask_logits"])
        np.testing.assert_array_equal(plain["class_logits"][:, 0], pooled["class_logits"][:, 0])
        assert np.abs(plain["class_logits"] - pooled["class_logits"]).max() > 0.01
    plain, pooled = results
    np.testing.assert_allclose(plain.scored.log_odds, pooled.scored.log_odds, atol=1e-5)


def test_heads_need_a_frozen_encoder(load, tmp_path):
    with pytest.raises(ConfigError, match="train the encoder on the photographs of every fold"):
        load(tmp_path, *HEADS, "--encoder-trainable", "top")
