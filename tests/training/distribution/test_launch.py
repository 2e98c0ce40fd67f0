"""`python -m training launch`: which processes it starts, what it refuses, what it says at the end."""

import os
import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from training.__main__ import main
from training.distribution import launch as launcher
from training.distribution.cluster import listen, read_cluster
from training.distribution.process_group import GroupResult


@pytest.fixture
def started(monkeypatch):
    """The tasks that would be started; they end as `started.end` says."""

    class Recorder(list):
        end = GroupResult(0)

        def group(self, given, output, *, color):
            assert (output, color) == (sys.stdout.buffer, False)
            self.extend(given)
            return SimpleNamespace(run=lambda: self.end)

    tasks = Recorder()
    monkeypatch.setattr(launcher, "ProcessGroup", tasks.group)
    return tasks


def leave(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["launch", *map(str, arguments)])
    return left.value.code


def test_workers(started, tiny_experiment, capsys):
    assert leave(tiny_experiment, "--fresh", "--data.cache-mb", "9", "--workers", "2", "--strategy=auto") == 0
    assert [task.name for task in started] == ["worker 0", "worker 1"]
    clusters = [read_cluster(task.environment) for task in started]
    assert len(set(clusters[0].jobs["worker"])) == 2
    assert clusters[0].jobs == clusters[1].jobs
    assert [cluster.index for cluster in clusters] == [0, 1]
    flags = ["--fresh", "--data.cache-mb", "9", "--strategy=auto"]
    for task, cluster in zip(started, clusters, strict=True):
        assert task.command == [sys.executable, "-m", "training", "run", str(tiny_experiment), *flags]
        assert not task.server
        listen(cluster).close()
    assert capsys.readouterr().out == "Starting worker 0, worker 1\n"


def test_parameter_servers(started, tiny_experiment):
    assert leave("--workers", 2, "--ps", 1, tiny_experiment) == 0
    assert [task.name for task in started] == ["chief", "worker 0", "worker 1", "ps 0"]
    assert [task.server for task in started] == [False, True, True, True]
    jobs = read_cluster(started[0].environment).jobs
    assert {job: len(set(addresses)) for job, addresses in jobs.items()} == {"chief": 1, "worker": 2, "ps": 1}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["E"], ["--workers is missing", "Usage: "]),
        (["--workers", "0", "E"], ["--workers 0", "1 or more"]),
        (["--workers", "two", "E"], ["--workers", "'two'", "Usage: "]),
        (["--workers"], ["--workers", "expected one argument"]),
        (["--workers", "2", "--ps", "-1", "E"], ["--ps -1", "0 or more"]),
        (["--workers", "2", "--seed", "3", "E"], ["No experiment given", "Usage: "]),
        (["--workers", "2", "nowhere.toml"], ["nowhere.toml", "No such file"]),
        (["--workers", "2", "E", "--sed", "3"], ["--sed", "--seed"]),
    ],
)
def test_bad_words(started, tiny_experiment, capsys, arguments, expected):
    assert leave(*(tiny_experiment if word == "E" else word for word in arguments)) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert all(word in printed for word in expected)
    assert started == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_signal_prints_the_command_to_resume(started, tiny_experiment, capsys, number, code):
    started.end = GroupResult(code, None, number)
    assert leave("--workers", 2, tiny_experiment, "--fresh", "--name", "a") == code
    again = shlex.join(["launch", "--workers", "2", str(tiny_experiment), "--name", "a"])
    assert capsys.readouterr().err == f"Stopped by {number.name}. Resume with: python -m training {again}\n"


@pytest.mark.slow
def test_what_stops_every_process_of_a_real_cluster(tiny_experiment, tmp_path):
    """Each says what is wrong, and the whole leaves with 2."""
    places = ["--data.root", str(tmp_path / "nowhere"), "--runs", str(tmp_path / "runs")]
    result = subprocess.run(
        [sys.executable, "-m", "training", "launch", "--workers", "2", str(tiny_experiment), *places],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert result.returncode == 2
    assert result.stdout.startswith("Starting worker 0, worker 1\n")
    assert "] error: " in result.stdout
    assert "nowhere" in result.stdout
    assert result.stderr.startswith("error: worker ")
    assert result.stderr.endswith(" exited with code 2; the others were stopped.\n")
    assert not (tmp_path / "runs").exists()
