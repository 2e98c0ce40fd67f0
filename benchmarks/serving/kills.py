"""What is left after SIGKILLs of the service and of training workers, while somebody labels and trains.

    python -m benchmarks.serving.kills --folder FOLDER [--kills 20] [--joint-kills chief member] [--seed 0]

The folder must be new. A stub stands for the training, and a lease lasts seconds. One client labels, makes
versions and orders trainings; it repeats requests that were not answered. Each kill hits the service or the
worker at a random moment, and the program is started again at once. Then two workers train the toy data
together with the real `fit`, once for each of `--joint-kills`: the chief is killed before the first
checkpoint, the other worker after it. After all trainings have ended, everything that the service has
confirmed is compared with what it stores.
"""

import hashlib
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from api.accounts.keys import make_key
from api.training.jobs import ENDED
from benchmarks.environments import start_process
from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.joint_kills import (
    USE_TIMEOUT_S,
    WORKERS,
    JointWorkers,
    check_joint_jobs,
    make_toys,
    train_and_kill,
)
from benchmarks.serving.labeller import CLASSES, JOBS, SETS, ConfirmedDataSet, Labeller, RepeatingClient
from benchmarks.serving.server_process import ServerProcess, free_port
from benchmarks.serving.stub_training import MODULE, OVERLAPS
from benchmarks.untrained_models import TINY, export_untrained, photograph
from segdec.errors import RunError
from segdec.images import decode_mask_values
from segdec.runtime.cli import clean_exit

PAUSE_S = (0.3, 4.0)
"""Shortest and longest time between a start and the next kill."""
FINISH_TIMEOUT_S = 120.0
"""Time that the open trainings have after the last kill."""
SIDE = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Kills, checks and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, photographs=40)
    parser.add_argument("--folder", type=Path, required=True, help="a new one")
    parser.add_argument("--kills", type=int, default=20, help="number of kills (default: %(default)s)")
    help_text = "worker killed in each joint training (default: each once)"
    parser.add_argument("--joint-kills", nargs="*", choices=WORKERS, default=WORKERS, help=help_text)
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    options = parser.parse_args(arguments)
    with (
        clean_exit(),
        Programs(options.folder.absolute()) as programs,
        make_labeller(programs, options.photographs, options.seed) as labeller,
    ):
        toys = make_toys(programs.url)
        killed = kill(programs, options.kills, random.Random(options.seed))
        labeller.stop()
        wait_for_jobs(labeller.client)
        programs.check_worker()
        joint = kill_joint_workers(programs, labeller.client, toys, options.joint_kills)
        labeller.jobs |= joint
        found = check(labeller, toys, programs.journal)
        with RepeatingClient(programs.url, USE_TIMEOUT_S) as client:
            found |= check_joint_jobs(client, joint)
    rows = [{"counted": name, "number": number} for name, number in {**killed, **found}.items()]
    faults = [name for name in found if name.startswith("fault")]
    return finish(options.json, rows, [Target(name, found[name], highest=0) for name in faults])


# === Programs ===


class Programs:
    """A service and a worker, which can be killed and started again.

    Args:
        folder: A new one for everything.

    Attributes:
        folder: The folder.
        url: Of the service.
        journal: Folder in which the trainings notice that they run at the same time.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.journal = folder / "journal"
        self.journal.mkdir()
        self.folder, self._port = folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        key, line = make_key("worker")
        (folder / "key.txt").write_text(key)
        (folder / "keys.txt").write_text(f"{line}\n")
        export_untrained(TINY, folder / "artifact", name="brackets")

    def __enter__(self) -> Self:
        self._service = self._start_service()
        self._worker = self._start_worker()
        return self

    def __exit__(self, *failure: object) -> None:
        self._worker.kill()
        self._worker.wait()
        self._service.__exit__(*failure)

    def kill_service(self) -> None:
        """Kills the service and starts it again."""
        self._service.kill()
        self._service.__exit__()
        self._service = self._start_service()

    def kill_worker(self) -> None:
        """Kills the worker and starts it again; raises as `check_worker`."""
        self.check_worker()
        self._worker.kill()
        self._worker.wait()
        self._worker = self._start_worker()

    def check_worker(self) -> None:
        """Raises RunError if the worker has ended by itself."""
        if self._worker.poll() is not None:
            text = (self.folder / "worker.txt").read_text()[-2000:]
            raise RunError(f"The worker ended by itself with {self._worker.returncode}. Its output:\n{text}")

    def _start_service(self) -> ServerProcess:
        folder = self.folder
        flags = ["--port", "{port}", "--models", str(folder / "models"), "--allow-no-model"]
        flags += [
            "--record",
            "required",
            "--record-folder",
            str(folder / "record"),
            "--record-free-share",
            "0",
        ]
        flags += ["--local-role", "engineer", "--train-keys", str(folder / "keys.txt")]
        command = [sys.executable, "-m", MODULE, "service", *flags]
        return ServerProcess(command, ready="/livez", port=self._port).__enter__()

    def _start_worker(self) -> "subprocess.Popen[str]":
        folder = self.folder
        places = (folder / "key.txt", folder / "worker", folder / "artifact", self.journal)
        arguments = ["worker", self.url, *map(str, places)]
        with (folder / "worker.txt").open("a") as output:
            return start_process([sys.executable, "-m", MODULE, *arguments], stdout=output, stderr=output)


def make_labeller(programs: Programs, photographs: int, seed: int) -> Labeller:
    """Makes a data set with photographs; returns who labels them."""
    with RepeatingClient(programs.url) as client:
        data_set = ConfirmedDataSet.create(client, "Brackets", CLASSES)
        for number in range(photographs):
            data_set.add_photograph(client, f"{number:03}", photograph(SIDE, SIDE, seed=number))
    return Labeller(programs.url, data_set, SIDE, seed)


def kill(programs: Programs, kills: int, chance: random.Random) -> dict[str, int]:
    """Kills at random moments; returns how often which program."""
    killed: Counter[str] = Counter()
    for _ in range(kills):
        time.sleep(chance.uniform(*PAUSE_S))
        if chance.random() < 0.5:
            programs.kill_service()
            killed["kills of the service"] += 1
        else:
            programs.kill_worker()
            killed["kills of the worker"] += 1
    return dict(killed)


def wait_for_jobs(client: RepeatingClient) -> None:
    """Returns when all jobs have ended, or after `FINISH_TIMEOUT_S`; others are counted as unexplained."""
    until = time.monotonic() + FINISH_TIMEOUT_S
    while time.monotonic() < until:
        if all(job["state"] in ENDED for job in client.get(JOBS)["jobs"]):
            return
        time.sleep(0.5)


def kill_joint_workers(
    programs: Programs, client: RepeatingClient, toys: ConfirmedDataSet, killed: Sequence[str]
) -> set[int]:
    """Kills a worker in each of several joint trainings; returns the ids of these jobs, which have ended."""
    if not killed:
        return set()
    with JointWorkers(programs.url, programs.folder, programs.journal) as workers:
        return {train_and_kill(workers, client, toys, name) for name in killed}


# === Checks ===


def check(labeller: Labeller, toys: ConfirmedDataSet, journal: Path) -> dict[str, int]:
    """Compares what the service has confirmed with what it stores; returns counts by name."""
    overlaps, counts = journal / OVERLAPS, Counter[str]()
    for data_set in (labeller.data_set, toys):
        counts.update(check_labels(labeller.client, data_set))
        counts.update(check_versions(labeller.client, data_set))
    return {
        "requests that were repeated": labeller.client.repeated,
        **counts,
        **check_jobs(labeller),
        "fault: trainings of one job at the same time": (
            len(overlaps.read_text().splitlines()) if overlaps.exists() else 0
        ),
    }


def check_labels(client: RepeatingClient, data_set: ConfirmedDataSet) -> dict[str, int]:
    """Counts confirmed annotations that are missing or changed, and stored ones that nobody sent."""
    counts: Counter[str] = Counter()
    for photograph_id, confirmed in data_set.labels.items():
        path = f"{SETS}/{data_set.id}/photographs/{photograph_id}"
        stored = {one["id"]: one for one in list_annotations(client, path)}
        counts["confirmed labels"] += len(confirmed)
        counts["fault: labels stored twice or by nobody"] += len(
            stored.keys() - {one.id for one in confirmed}
        )
        for one in confirmed:
            found = stored.get(one.id)
            is_kept = found is not None and found["label"] == one.label
            if is_kept and one.mask is not None:
                png = client.send("GET", f"{path}/mask?annotation={one.id}").content
                is_kept = np.array_equal(decode_mask_values(png, "mask", classes=[1, 2]), one.mask)
            counts["fault: labels lost or changed"] += not is_kept
    return dict(counts)


def list_annotations(client: RepeatingClient, path: str) -> list[dict[str, Any]]:
    """Returns all annotations of the photograph at `path`."""
    page = client.get(f"{path}/annotations?limit=500")
    found: list[dict[str, Any]] = page["annotations"]
    while page["next_before"] is not None:
        page = client.get(f"{path}/annotations?limit=500&before={page['next_before']}")
        found += page["annotations"]
    return found


def check_versions(client: RepeatingClient, data_set: ConfirmedDataSet) -> dict[str, int]:
    """Counts confirmed versions whose manifest or files are not those of their digests."""
    changed = 0
    for number, digest in data_set.versions.items():
        path = f"{SETS}/{data_set.id}/versions/{number}"
        manifest = client.send("GET", f"{path}/manifest").content
        names = {part.split(b".")[0].decode() for part in manifest.split(b"/")[1:]}
        files = {name: client.send("GET", f"{path}/files/{name}").content for name in names}
        digests = {digest: manifest, **files}
        changed += any(hashlib.sha256(data).hexdigest() != name for name, data in digests.items())
    return {"confirmed versions": len(data_set.versions), "fault: versions changed": changed}


def check_jobs(labeller: Labeller) -> dict[str, int]:
    """Counts jobs by state, and those that are lost, ended twice, or whose state has no explanation."""
    client = labeller.client
    jobs = client.get(f"{JOBS}?limit=200")["jobs"]
    events = {job["id"]: client.get(f"{JOBS}/{job['id']}/events?limit=1000")["events"] for job in jobs}
    texts = {
        number: [event["content"] for event in found if event["kind"] == "state"]
        for number, found in events.items()
    }
    leases = sum("has the job" in text for found in texts.values() for text in found)
    ends = {number: sum(map(_is_end, found)) for number, found in texts.items()}
    return {
        "trainings ordered": len(jobs),
        "leases of a worker": leases,
        **{f"trainings {state}": number for state, number in Counter(job["state"] for job in jobs).items()},
        "fault: confirmed trainings lost": len(labeller.jobs - {job["id"] for job in jobs}),
        "fault: trainings that ended twice": sum(number > 1 for number in ends.values()),
        "fault: states without an explanation": sum(not _is_explained(job, texts[job["id"]]) for job in jobs),
    }


def _is_end(text: str) -> bool:
    return text.startswith(tuple(f"The job is {state}." for state in ENDED))


def _is_explained(job: dict[str, Any], texts: Sequence[str]) -> bool:
    """Whether the job has ended, its last sentence says so, and a failure has a reason."""
    ends = [text for text in texts if text.startswith(f"The job is {job['state']}.")]
    return bool(ends) and ends[-1] == texts[-1] and (job["state"] == "done" or bool(job["reason"]))


if __name__ == "__main__":
    sys.exit(main())
