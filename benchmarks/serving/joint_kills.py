"""Joint trainings of two workers, of which one is killed, for `benchmarks.serving.kills`."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.environments import start_process
from benchmarks.serving.joint_worker import MODULE
from benchmarks.serving.labeller import ENDED, JOBS, ConfirmedDataSet, RepeatingClient
from benchmarks.serving.server_process import free_port
from datasets.layouts.toy import make_sample
from segdec.errors import RunError
from segdec.images import encode_png

WORKERS = ("chief", "member")
"""Names of the workers: the first by name is the chief."""
PHOTOGRAPHS, SIDE, MINUTES = 24, 32, 2.0
"""Settings of the toy data, and the time limit of a training."""
PATIENCE_S = 1200.0
"""Time after which a moment that does not come is an error."""
USE_TIMEOUT_S = 300.0
"""Time in which the service answers after it has loaded a model."""


class JointWorkers:
    """Two workers on this machine, which can be killed and started again.

    Args:
        url: Of the service.
        folder: With the file `key.txt`; each worker gets a folder there.
        journal: Folder in which the trainings notice that they run at the same time.
    """

    def __init__(self, url: str, folder: Path, journal: Path) -> None:
        self._url, self._folder, self._journal = url, folder, journal
        self._addresses = {name: f"127.0.0.1:{free_port()}" for name in WORKERS}
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        self._processes = {name: self._start(name) for name in WORKERS}
        return self

    def __exit__(self, *failure: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        """Kills a worker and starts it again."""
        self._processes[name].kill()
        self._processes[name].wait()
        self._processes[name] = self._start(name)

    def check(self) -> None:
        """Raises RunError if a worker has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                text = (self._folder / f"{name}.txt").read_text()[-2000:]
                raise RunError(
                    f"The worker {name} ended by itself with {process.returncode}. Its output:\n{text}"
                )

    def _start(self, name: str) -> "subprocess.Popen[str]":
        places = map(str, (self._folder / "key.txt", self._folder / name))
        arguments = ["work", self._url, *places, name, self._addresses[name], str(self._journal)]
        with (self._folder / f"{name}.txt").open("a") as output:
            return start_process([sys.executable, "-m", MODULE, *arguments], stdout=output, stderr=output)


def make_toys(url: str) -> ConfirmedDataSet:
    """Makes a data set of the toy data with a version."""
    with RepeatingClient(url) as client:
        toys = ConfirmedDataSet.create(client, "Toys", ["defect"])
        for index in range(PHOTOGRAPHS):
            sample = make_sample(index, size=SIDE)
            number = toys.add_photograph(client, f"{index:03}", encode_png(sample.image))
            label, mask = "good", None
            if sample.label and sample.mask is not None:
                label, mask = "defect", np.asarray(sample.mask > 0, np.uint8)
            toys.annotate(client, number, label, mask)
        toys.make_version(client)
    return toys


def train_and_kill(
    workers: JointWorkers, client: RepeatingClient, toys: ConfirmedDataSet, killed: str
) -> int:
    """Lets two workers train a model and kills one of them; returns the id of the job, which has ended.

    The chief is killed before the first checkpoint, the other worker after it.
    """
    body = {"data_set": toys.id, "data_set_version": max(toys.versions), "model": "toys"}
    body |= {"machines": len(WORKERS), "minutes": MINUTES}
    number: int = client.send("POST", JOBS, json=body).json()["id"]

    def wait_for(is_reached: Callable[[Mapping[str, Any]], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_reached(job := client.get(f"{JOBS}/{number}")):
            workers.check()
            if time.monotonic() > until or job["state"] in ENDED:
                raise RunError(f"The joint training {number} is {job['state']}: {job['reason']}")
            time.sleep(0.1)

    if killed == WORKERS[0]:
        wait_for(lambda job: job["checkpoint"] is None and _is_connected(client, number))
    else:
        wait_for(lambda job: job["checkpoint"] is not None)
    workers.kill(killed)
    wait_for(lambda job: job["state"] in ENDED)
    return number


def _is_connected(client: RepeatingClient, number: int) -> bool:
    """Whether the chief has printed the start of the training, which all processes begin together."""
    events = client.get(f"{JOBS}/{number}/events?limit=1000")["events"]
    lines = (line for event in events if event["kind"] == "output" for line in event["content"])
    return any(f"in a cluster of {len(WORKERS)} × worker" in line for line in lines)


def check_joint_jobs(client: RepeatingClient, jobs: set[int]) -> dict[str, int]:
    """Counts how often a group began a joint training, and those whose model the service cannot use."""
    groups = useless = 0
    for number in jobs:
        events = client.get(f"{JOBS}/{number}/events?limit=1000")["events"]
        begins = f"The workers {', '.join(WORKERS)} have the job."
        groups += sum(event["content"] == begins for event in events)
        try:
            client.send("POST", f"{JOBS}/{number}/use")
        except RunError as error:
            print(f"The model of the joint training {number} cannot be used: {error}", file=sys.stderr)
            useless += 1
    return {
        "joint trainings": len(jobs),
        "leases of a group": groups,
        "fault: joint trainings without a usable model": useless,
    }
