"""From a finished run and reviewed photographs to the next version; its training takes a few steps."""

import itertools
import json
import re
import shutil
import signal

import pytest

from segdec.artifact import manifest_sha256, read_manifest
from segdec.errors import ArtifactError, ConfigError
from training.__main__ import main
from training.experiment_file import load_experiment
from training.fit.time_control import MAX_STEPS
from training.retrain.lineage import find_lineage

pytest.importorskip("tensorflow")

from training.calibrate import score_folds
from training.export import ExportOptions, export_run
from training.metrics.comparison import compare_runs
from training.retrain import comparison
from training.run.folder import RunFolder
from training.run.run_log import read_log
from training.trainer import Trainer


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of the finished run, `runs/tiny`."""
    return shutil.copytree(finished_run, tmp_path / "runs" / "tiny")


@pytest.fixture(scope="module")
def exported(finished_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "1"
    export_run(finished_run, folder, ExportOptions(with_sample=False, engines=("openvino",)))
    return folder


@pytest.fixture
def model(exported, tmp_path):
    """Its model, version 1, as a service has several."""
    return shutil.copytree(exported, tmp_path / "models" / "tiny" / "1")


@pytest.fixture
def _ticking_clock(monkeypatch):
    """The clock advances by half a minute whenever it is read; a forward pass takes a millisecond."""
    ticks = itertools.count(step=30)
    for module in ("fit", "retrain"):
        monkeypatch.setattr(f"training.{module}.command.clock", lambda: next(ticks))
    monkeypatch.setattr("training.retrain.command.measure_forward", lambda *_: 0.001)


def retrain(run, reviewed, *arguments):
    main(["retrain", str(run), "--reviewed", str(reviewed), *map(str, arguments)])


@pytest.mark.slow
@pytest.mark.usefixtures("_ticking_clock")
def test_the_next_version_begins_with_the_weights_of_the_former(run, model, write_reviewed, capsys):
    reviewed = write_reviewed()
    retrain(run, reviewed, "--parent", model, "--force", "--minutes", 40)
    printed = capsys.readouterr().out
    assert "reviewed    20 new photographs: 6 good + 6 defective to train, 2 good + 2 defective" in printed
    assert "the former test photographs" in printed and "the new test photographs" in printed
    assert "\nrating      useless: On 8 test photographs " in printed
    assert printed.endswith("\nrating      useless, see above: do not serve tiny 2.\n")
    next_run, next_model = run.with_name("tiny_2"), model.with_name("2")
    config = load_experiment(next_run / "config.toml")
    assert config.initial_weights == run / "network.weights.h5" and config.data.reviewed == (reviewed,)
    assert config.stages.segment.learning_rate == 0.5e-3
    assert 5 < sum(config.stages.steps.values()) < MAX_STEPS
    manifest = read_manifest(next_model)
    assert (manifest.name, manifest.version) == ("tiny", "2")
    assert json.loads((model.parent / "aliases.json").read_text()) == {"stable": "1"}
    assert (manifest.parent.version, manifest.parent.sha256) == ("1", manifest_sha256(model))
    before, after = (RunFolder(folder).splits.read_text().splitlines() for folder in (run, next_run))
    assert {line for line in before if line[0] != "#"} < set(after)
    comparison = compare_runs(next_run / "parent", next_run)
    assert (comparison.photographs, comparison.ignored) == (8, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("_ticking_clock")
def test_a_stopped_command_continues_and_exports_no_worse_version(
    run, model, write_reviewed, monkeypatch, capsys
):
    reviewed, arguments, advance = write_reviewed(), ("--parent", model, "--minutes", 40), Trainer._advance
    folder = RunFolder(run.with_name("tiny_2"))

    def stop(trainer, index):
        advance(trainer, index)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_advance", stop)
        with pytest.raises(SystemExit):
            retrain(run, reviewed, *arguments)
    assert not folder.has_result
    steps = read_log(folder.path)[-1]["step"]
    capsys.readouterr()
    monkeypatch.setattr(comparison, "combine_verdicts", lambda _: "worse")
    with pytest.raises(SystemExit) as refused:
        retrain(run, reviewed, *arguments)
    printed, error = capsys.readouterr()
    assert "reviewed " not in printed
    assert re.search(r"error: tiny 2 is worse than 1 and was not exported\..*--force", error)
    assert refused.value.code == 2 and not model.with_name("2").exists()
    assert 1 < folder.experiment().stages.segment.steps == steps < MAX_STEPS
    with pytest.raises(SystemExit):
        retrain(run, write_reviewed("others"), *arguments, "--version", "2", "--out", model.with_name("3"))
    assert "tiny_2' is another run" in capsys.readouterr().err


# === What is refused, before anything is trained ===


@pytest.mark.slow
def test_what_cannot_be_learnt_from_is_refused(run, model, write_reviewed, capsys):
    for reviewed, arguments, printed in (
        (write_reviewed("other", label="hole"), (), "the label of 10 photographs is 'hole'"),
        (write_reviewed("none", 0), (), "has no entry"),
        (write_reviewed("some"), ("--minutes", "0"), "--minutes 0. Expected a time limit"),
        (write_reviewed("little"), ("--minutes", "1e-300"), "--minutes 1e-300. Expected a time limit"),
        (write_reviewed("more"), ("--name", "../x"), "'../x' cannot name a run"),
    ):
        with pytest.raises(SystemExit) as refused:
            retrain(run, reviewed, "--parent", model, *arguments)
        assert refused.value.code == 2
        assert printed in capsys.readouterr().err
    assert [path.name for path in run.parent.iterdir() if path.is_dir()] == ["tiny"]


@pytest.mark.slow
def test_lineage_is_found_and_counts_on(run, model, tmp_path, monkeypatch, tiny_artifact):
    folder = RunFolder.finished(run)
    monkeypatch.chdir(tmp_path)
    lineage = find_lineage(folder, None, None, None)
    assert (lineage.name, lineage.version, lineage.out) == ("tiny", "2", model.with_name("2"))
    model.rename(tmp_path / "exported")
    with pytest.raises(ArtifactError, match=r"No model of the run .*--parent MODEL"):
        find_lineage(folder, None, None, None)
    assert find_lineage(folder, tmp_path / "exported", None, None).out == tmp_path / "exported_2"
    with pytest.raises(ArtifactError, match=r"exported exists\..* another --version or --out"):
        find_lineage(folder, tmp_path / "exported", None, tmp_path / "exported")
    with pytest.raises(ConfigError, match="--version 1 is the version of the model"):
        find_lineage(folder, tmp_path / "exported", "1", None)
    with pytest.raises(ArtifactError, match="was trained on other photographs"):
        find_lineage(folder, tiny_artifact, None, None)


@pytest.mark.slow
def test_folds_of_a_run_that_began_with_learnt_weights_are_refused(run):
    weights = {"initial_weights": run / "network.weights.h5"}
    experiment = RunFolder(run).experiment().model_copy(update=weights)
    with pytest.raises(ConfigError, match="were trained on the photographs of every fold"):
        next(score_folds(RunFolder(run), experiment, 2))
