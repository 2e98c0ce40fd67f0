"""Workers as processes that are killed, with a service on a socket; a stub stands for the training."""

import json
import signal
import time
from pathlib import Path

import httpx
import pytest

from api.database.database import open_database, write_transaction
from api.training.tables import training_jobs
from tests.api.engineer_client import KEY
from tests.api.live_server import served
from tests.api.training.training_service import JOBS, TrainingService

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.slow


def wait_for(condition):
    """Returns when the condition is true; the test ends if it takes a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def start(start_worker, trained_model):
    """Starts a worker with a stub for the training: URL, name, steps and further arguments → process."""
    return lambda url, name, steps, *group: start_worker(url, name, trained_model, steps, *group)


def expire_leases(folder):
    """Lets the time of all leases pass."""
    engine = open_database(f"sqlite:///{folder}/record.db")
    with write_transaction(engine) as connection:
        connection.execute(training_jobs.update().values(leased_until=training_jobs.c.created_at))
    engine.dispose()


def test_a_killed_worker_loses_its_job_to_another_one_that_continues(start, tmp_path):
    folder = tmp_path / "record"
    with TrainingService(folder) as client:
        job_id = client.order(client.fill())
    client = TrainingService(folder)
    with (
        served(client.app) as (host, port),
        httpx.Client(base_url=f"http://{host}:{port}", headers={"X-API-Key": KEY}) as http,
    ):
        url = f"http://{host}:{port}"

        def show():
            return http.get(f"{JOBS}/{job_id}").json()

        first = start(url, "gpu-1", steps=2000)
        wait_for(lambda: show()["checkpoint"] is not None)
        trainers = trainers_below(tmp_path / "gpu-1")
        assert len(trainers) == 1
        first.send_signal(signal.SIGKILL)
        first.wait()
        wait_for(lambda: not trainers_below(tmp_path / "gpu-1"))  # the training ends with its worker
        position = show()["checkpoint"]["position"]
        step = int(position.removeprefix("stage joint, step "))
        expire_leases(folder)
        second = start(url, "gpu-2", steps=step + 20)
        wait_for(lambda: show()["worker"] == "gpu-2" and (show()["progress"] or {}).get("step", 0) > step)
        second.terminate()
        assert second.wait(timeout=60) == 0
        shown = show()
        assert (shown["state"], shown["reason"]) == ("queued", "The worker stopped.")
        assert start(url, "gpu-3", steps=step + 20).wait(timeout=60) == 0
        events = http.get(f"{JOBS}/{job_id}/events").json()["events"]
    begins = [
        int(line.removeprefix("begins after step "))
        for event in events
        if event["kind"] == "output"
        for line in event["content"]
    ]
    assert begins[:2] == [0, step]
    assert begins[2] > step
    taken = [event["content"]["step"] for event in events if event["kind"] == "metrics"]
    assert sorted(set(taken)) == list(range(1, step + 21))
    assert show_state(folder, job_id) == "done"


def test_two_workers_train_a_job_together(start, tmp_path):
    """One is stopped: both end with a checkpoint, and the group continues when both are there again."""
    folder, group = tmp_path / "record", tmp_path / "group"
    group.mkdir()
    with TrainingService(folder) as client:
        job_id = client.order(client.fill(), machines=2)
    client = TrainingService(folder)
    with (
        served(client.app) as (host, port),
        httpx.Client(base_url=f"http://{host}:{port}", headers={"X-API-Key": KEY}) as http,
    ):

        def start_both(steps):
            return [
                start(f"http://{host}:{port}", name, steps, f"{name}:2222", group)
                for name in ("gpu-a", "gpu-b")
            ]

        def show():
            return http.get(f"{JOBS}/{job_id}").json()

        both = start_both(steps=2000)
        wait_for(lambda: show()["checkpoint"] is not None and (group / "1.json").exists())
        wait_for(lambda: "step" in show()["progress"])
        tasks = [json.loads((group / f"{rank}.json").read_text()) for rank in (0, 1)]
        both[1].terminate()
        assert [process.wait(timeout=60) for process in both] == [0, 0]
        shown = show()
        assert (shown["state"], shown["attempts"], shown["members"]) == ("queued", 0, [])
        assert shown["reason"] == "Another worker of the group stopped."
        step = int(shown["checkpoint"]["position"].removeprefix("stage joint, step "))
        for path in group.iterdir():
            path.unlink()
        assert [process.wait(timeout=60) for process in start_both(steps=step + 5)] == [0, 0]
        events = http.get(f"{JOBS}/{job_id}/events").json()["events"]
        assert show()["state"] == "done"
    assert [task["task"]["index"] for task in tasks] == [0, 1]
    assert [task["cluster"] for task in tasks] == [{"worker": ["gpu-a:2222", "gpu-b:2222"]}] * 2
    taken = [event["content"]["step"] for event in events if event["kind"] == "metrics"]
    assert sorted(set(taken)) == list(range(1, step + 6))
    texts = [event["content"] for event in events if event["kind"] == "state"]
    assert texts.count("The workers gpu-a, gpu-b have the job.") == 2


def show_state(folder, job_id):
    with TrainingService(folder) as client:
        return client.show(job_id)["state"]


def trainers_below(folder):
    """Processes that run in a folder of the worker."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = (process / "cwd").readlink()
        except OSError:
            continue
        if place.is_relative_to(folder):
            pids.append(int(process.name))
    return pids
