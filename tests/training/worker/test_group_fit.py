"""A job that the real `fit` of two workers trains together, on a toy set in the service."""

from functools import partial

import httpx
import pytest

from tests.api.engineer_client import KEY
from tests.api.live_server import served
from tests.api.training.training_service import JOBS, TrainingService
from tests.training.worker.test_fit_job import fill

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.slow

PATIENCE_S = 900


def record_requests(app):
    """Returns a list to which the requests of workers with a lease are added: lease, method, last word."""
    requests = []

    @app.middleware("http")
    async def record(request, call_next):
        if lease := request.headers.get("x-lease"):
            requests.append((lease, request.method, request.url.path.rpartition("/")[2]))
        return await call_next(request)

    return requests


def test_two_workers_train_one_model_that_the_chief_uploads(start_worker, tmp_path, free_ports):
    with TrainingService(tmp_path / "record") as client:
        data_set = client.run(partial(fill, client.features.data_sets))
        job_id = client.order(data_set, model="toys", minutes=0.05, machines=2)
    client = TrainingService(tmp_path / "record")
    requests = record_requests(client.app)
    with (
        served(client.app) as (host, port),
        httpx.Client(base_url=f"http://{host}:{port}", headers={"X-API-Key": KEY}) as http,
    ):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        names = ("gpu-a", "gpu-b")
        workers = [
            start_worker(f"http://{host}:{port}", name, address, module="fit_worker")
            for name, address in zip(names, addresses, strict=True)
        ]
        codes = [worker.wait(timeout=PATIENCE_S) for worker in workers]
        shown = http.get(f"{JOBS}/{job_id}").json()
        events = http.get(f"{JOBS}/{job_id}/events").json()["events"]
    printed = [line for event in events if event["kind"] == "output" for line in event["content"]]
    assert (codes, shown["state"]) == ([0, 0], "done"), (shown["reason"], printed)
    assert (shown["worker"], shown["version"]) == ("gpu-a", "1")
    assert shown["outcome"]["classes"] == ["good", "defect"]
    texts = [event["content"] for event in events if event["kind"] == "state"]
    assert texts.count("The workers gpu-a, gpu-b have the job.") == 1
    assert any("multi-worker on worker 0 in a cluster of 2 × worker" in line for line in printed)
    fetched = {lease for lease, _, word in requests if word == "manifest"}
    uploaded = {lease for lease, method, _ in requests if method == "PUT"}
    results = [lease for lease, method, word in requests if (method, word) == ("PUT", "result")]
    assert (len(fetched), len(uploaded), results) == (2, 1, [*uploaded])
