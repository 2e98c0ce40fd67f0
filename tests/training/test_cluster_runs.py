"""Runs of several processes on loopback: what they give, and what the loss of one of them does."""

import json
import time

import numpy as np
import pytest

from segdec.encoders import ENCODERS
from tests import forked
from tests import tiny_encoder as tiny
from training.run.run_log import read_log

pytest.importorskip("tensorflow")

from training.run.folder import RunFolder


class ClusterRun:
    """The processes of one run; their output is in files."""

    def __init__(self, experiment, folder, addresses):
        self.experiment, self.folder, self.addresses = experiment, folder, addresses
        self.processes = {}

    def start(self, *flags, **options):
        for job, addresses in self.addresses.items():
            for index in range(len(addresses)):
                self.start_task(job, index, *flags, **options)
        return self

    def start_task(self, job, index, *flags, before=None):
        cluster = {"cluster": self.addresses, "task": {"type": job, "index": index}}
        arguments = ["run", self.experiment, "--runs", self.folder, *flags]
        output = self._output(job, index)
        output.unlink(missing_ok=True)
        environment = {"TF_CONFIG": json.dumps(cluster)}
        self.processes[job, index] = forked.start(
            "training", *arguments, printed=output, before=before, **environment
        )

    def exit_codes(self, *tasks):
        return [forked.wait(self.processes[task]) for task in tasks]

    def output(self, job, index):
        return self._output(job, index).read_text()

    def wait_for_records(self, count):
        """Until the log holds so many records."""
        for _ in range(forked.PATIENCE_S * 20):
            if len(read_log(self.folder / "tiny")) >= count:
                return
            if any(process.exitcode for process in self.processes.values()):
                break
            time.sleep(0.05)
        raise TimeoutError({task: self.output(*task) for task in self.processes})

    def terminate(self, *task):
        self.processes[task].terminate()

    def kill(self, *task):
        process = self.processes.pop(task)
        process.kill()
        process.join()

    def kill_all(self):
        for task in list(self.processes):
            self.kill(*task)

    def _output(self, job, index):
        return self.folder / f"{job}{index}.txt"


@pytest.fixture
def start_run(tiny_experiment, tmp_path, free_ports):
    """Makes the cluster of a run: folder name and sizes of the jobs → `ClusterRun`."""
    runs = []

    def make(name, **sizes):
        ports = iter(free_ports(sum(sizes.values())))
        addresses = {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in sizes.items()}
        folder = tmp_path / name
        folder.mkdir()
        runs.append(ClusterRun(tiny_experiment, folder, addresses))
        return runs[-1]

    yield make
    for run in runs:
        run.kill_all()


WORKERS = (("worker", 0), ("worker", 1))
LONGER = [
    *("--stages.segment.steps", "30", "--stages.decision.steps", "4", "--stages.joint.steps", "0"),
    *("--checkpoint-every", "4", "--validate-every", "8"),
]


@pytest.mark.slow
def test_lost_processes_change_nothing(start_run, read_weights, read_records):
    """Two workers of which the chief is killed end bit-identical to two left alone."""
    alone, interrupted = start_run("alone", worker=2), start_run("interrupted", worker=2)
    assert alone.start(*LONGER).exit_codes(*WORKERS) == [0, 0], alone.output("worker", 0)
    interrupted.start(*LONGER).wait_for_records(10)
    interrupted.kill("worker", 0)
    assert interrupted.exit_codes(("worker", 1)) == [69]
    assert "error: The cluster is incomplete" in interrupted.output("worker", 1)
    assert interrupted.start(*LONGER).exit_codes(*WORKERS) == [0, 0], interrupted.output("worker", 0)
    assert "Resuming" in interrupted.output("worker", 0)
    expected = read_weights(alone.folder / "tiny")
    for name, value in read_weights(interrupted.folder / "tiny").items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    assert read_records(interrupted.folder / "tiny") == read_records(alone.folder / "tiny")
    results = [(run.folder / "tiny" / "result.json").read_text() for run in (alone, interrupted)]
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_run_continues_under_another_strategy(start_run):
    """Begun by two workers, finished by one process with two devices."""
    run = start_run("moved", worker=2)
    run.start(*LONGER).wait_for_records(10)
    run.terminate("worker", 1)  # a signal to one stops both
    assert run.exit_codes(*WORKERS) == [75, 75], run.output("worker", 0)
    assert "Stopped by SIGTERM" in run.output("worker", 0)
    arguments = ["run", run.experiment, "--runs", run.folder, *LONGER, "--devices", "cpu:2"]
    done = forked.run("training", *arguments)
    assert done.returncode == 0, done.stderr
    assert "Resuming" in done.stdout
    assert "mirrored on 2 × CPU" in done.stdout


@pytest.mark.slow
def test_parameter_servers_continue_without_a_worker_and_resume_without_a_server(start_run):
    run = start_run("asynchronous", ps=1, worker=2, chief=1)
    steps = ["--stages.segment.steps", "100", "--checkpoint-every", "10", "--validate-every", "100"]
    steps += ["--stages.decision.steps", "0"]
    run.start(*steps).wait_for_records(15)
    run.kill("worker", 1)
    try:
        run.wait_for_records(len(read_log(run.folder / "tiny")) + 15)  # the other one continues
    except TimeoutError:  # or TensorFlow passes the loss on to the chief, as docs/distributed.md says
        assert run.exit_codes(("chief", 0)) == [69], run.output("chief", 0)
        run.kill_all()
        run.start(*steps).wait_for_records(len(read_log(run.folder / "tiny")) + 15)
    run.kill("ps", 0)
    assert run.exit_codes(("chief", 0)) == [69], run.output("chief", 0)
    assert "error: The cluster is incomplete" in run.output("chief", 0)
    run.kill_all()

    run.start(*steps)
    assert run.exit_codes(("chief", 0)) == [0], run.output("chief", 0)
    assert "Resuming" in run.output("chief", 0)
    assert (run.folder / "tiny" / "result.json").exists()


@pytest.mark.slow
def test_each_process_computes_the_features_of_its_images(start_run, tiny_encoder, tiny_encoder_weights):
    """And the encoder is that of the file in the end, to the bit."""
    from segdec.network.encoder import load_application

    run = start_run("encoder", worker=2)
    encoder = ["--network.encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    encoder += ["--network.linear-mask", "--network.mask-normalization", "none"]
    changes = ("brightness", "contrast", "shift", "noise")
    unchanged = [word for name in changes for word in (f"--augmentation.{name}", "0")]
    one_stage = ["--stages.segment.steps", "0", "--stages.decision.steps", "0"]
    run.start(*encoder, *unchanged, *one_stage, before=tiny.register)
    assert run.exit_codes(*WORKERS) == [0, 0], run.output("worker", 0)
    began = load_application(ENCODERS[tiny_encoder])
    began.load_weights(tiny_encoder_weights)
    ended = RunFolder.finished(run.folder / "tiny")
    assert ended.experiment().caches_features
    network = ended.network()
    assert network.heads[0].get_layer("linear_8").kernel.numpy().any()
    for layer in network.backbone.layers:
        if layer.weights:
            expected = began.get_layer(layer.name).get_weights()
            for ours, theirs in zip(layer.get_weights(), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=layer.name)


@pytest.mark.slow
def test_processes_with_different_experiments_are_rejected(start_run):
    run = start_run("different", worker=2)
    run.start_task("worker", 0)
    run.start_task("worker", 1, "--seed", "1")
    assert run.exit_codes(*WORKERS) == [2, 2]
    message = "error: The processes of the cluster differ in experiment, data or encoder weights"
    assert all(message in run.output(*task) for task in WORKERS)
    assert not (run.folder / "tiny").exists()
