"""`fit` and `retrain` of two processes, each with its own folders; the clock ticks by being looked at."""

import json
import re
import shutil
from functools import partial
from types import SimpleNamespace

import pytest

from segdec.artifact import read_manifest
from tests import forked
from tests.training import fault_injection
from training.distribution.cluster import Cluster
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.export import ExportOptions, export_run
from training.fit import cluster_member, command

NARROW = {
    "segmentation_widths": ((4,), (4,), (4,)),
    "feature_width": 8,
    "feature_kernel": 5,
    "decision_widths": (4, 4, 4),
}
TICK_S = 60
CHIEF, MEMBER = 0, 1


class Machines:
    """Two machines with a copy of the data each; their output is in files."""

    def __init__(self, root, folder, free_ports):
        self.root, self.folder, self._free_ports = root, folder, free_ports
        for rank in (CHIEF, MEMBER):
            shutil.copytree(root, self.place(rank) / "parts")

    def place(self, rank):
        return self.folder / f"machine{rank}"

    def run(self, words_of, faulty=MEMBER, **faults_of_one):
        """Runs the words of each rank on both machines, one with faults; returns the exit codes."""
        workers = [f"127.0.0.1:{port}" for port in self._free_ports(2)]
        processes = []
        for rank in (CHIEF, MEMBER):
            cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            faults = {"tick_s": TICK_S, "compact": NARROW, "print_weights": True}
            faults |= faults_of_one if rank == faulty else {}
            printed = self.place(rank) / "printed.txt"
            printed.unlink(missing_ok=True)
            before = partial(fault_injection.prepare, faults)
            arguments = [*words_of(self.place(rank)), "--strategy", "multi-worker"]
            environment = {"TF_CONFIG": json.dumps(cluster)}
            processes.append(
                forked.start("training", *arguments, printed=printed, before=before, **environment)
            )
        return [forked.wait(process) for process in processes]

    def printed(self, rank):
        return (self.place(rank) / "printed.txt").read_text()

    def weights(self, rank):
        return re.findall(r"weights of stage .*", self.printed(rank))


@pytest.fixture
def machines(toy_root, tmp_path, free_ports):
    return Machines(toy_root, tmp_path, free_ports)


def fit_words(minutes, *flags):
    return lambda place: [
        *("fit", place / "parts", "--runs", place / "runs", "--out", place / "model"),
        *("--encoder-weights", "none", "--name", "toy", "--minutes", minutes, *flags),
    ]


def test_the_time_in_which_machines_connect_does_not_count(monkeypatch, tmp_path):
    now, began = [100.0], []

    def connected(config, cluster):  # noqa: ARG001
        now[0] += 500
        return SimpleNamespace(is_chief=True, broadcast=lambda message: message)

    monkeypatch.setattr(cluster_member, "ProcessGroupContext", connected)
    monkeypatch.setattr(command, "clock", lambda: now[0])
    monkeypatch.setattr(command, "_fit", lambda *arguments: began.append(arguments[3]))
    options = command.FitOptions(root=tmp_path, out=tmp_path / "model", runs=tmp_path / "runs")
    command.fit(options, 90.0, Cluster({"worker": ("a:1", "b:1")}, "worker", 0))
    command.fit(options, 90.0)
    assert began == [590.0, 90.0]


@pytest.mark.slow
def test_two_machines_without_a_shared_folder_train_one_model(machines):
    """A signal to the one without files stops both, and the run resumes."""
    arguments = fit_words("400", "--resume")
    step_done = "training.fit.time_control:TimeControl.step_done"
    codes = machines.run(arguments, terminate_at=step_done, count=3)
    assert codes == [75, 75], machines.printed(CHIEF) + machines.printed(MEMBER)
    assert "The same command resumes." in machines.printed(CHIEF)
    codes = machines.run(arguments)
    assert codes == [0, 0], machines.printed(CHIEF) + machines.printed(MEMBER)
    assert "multi-worker on worker 1 in a cluster of 2 × worker" in machines.printed(MEMBER)
    for rank in (CHIEF, MEMBER):
        assert re.search(r"Resuming .*: stage \w+ after step [1-9]", machines.printed(rank))
    assert machines.weights(CHIEF) and machines.weights(CHIEF) == machines.weights(MEMBER)
    assert read_manifest(machines.place(CHIEF) / "model").classes == ("good", "defect")
    assert load_experiment(machines.place(CHIEF) / "runs" / "toy.toml").batch_size % 2 == 0
    assert not (machines.place(MEMBER) / "runs").exists()
    assert not (machines.place(MEMBER) / "model").exists()
    assert machines.run(fit_words("40")) == [2, 69]  # the run exists
    assert "Give --overwrite to replace it" in machines.printed(CHIEF)
    assert "error: The cluster is incomplete: the chief" in machines.printed(MEMBER)


@pytest.mark.slow
def test_two_machines_with_a_copy_of_the_run_retrain_it(machines, finished_run, write_reviewed):
    reviewed = write_reviewed()
    for rank in (CHIEF, MEMBER):
        shutil.copytree(finished_run, machines.place(rank) / "runs" / "tiny")
        shutil.copytree(reviewed, machines.place(rank) / "reviewed")
    options = ExportOptions(with_sample=False, engines=("openvino",), name="tiny")
    export_run(finished_run, machines.place(CHIEF) / "models" / "1", options)
    codes = machines.run(
        lambda place: [
            *("retrain", place / "runs" / "tiny", "--reviewed", place / "reviewed", "--force"),
            *("--parent", place / "models" / "1", "--minutes", "40", "--no-sample"),
        ]
    )
    assert codes == [0, 0], machines.printed(CHIEF) + machines.printed(MEMBER)
    assert machines.weights(CHIEF) and machines.weights(CHIEF) == machines.weights(MEMBER)
    assert read_manifest(machines.place(CHIEF) / "models" / "2").version == "2"
    assert (machines.place(CHIEF) / "runs" / "tiny_2").is_dir()
    assert not (machines.place(MEMBER) / "runs" / "tiny_2").exists()
