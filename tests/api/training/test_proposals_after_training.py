"""A few labels, a short training, and its model proposes the rest: also if the service stops in between."""

import asyncio
import threading

import pytest

from api.inspecting.background_inspector import BackgroundInspector
from api.training import proposals_after_training
from api.training.jobs import change_job
from api.training.proposal_orders import change_order
from tests.api.conftest import problem
from tests.api.data_sets.filled_data_set import photograph_file
from tests.api.training.proposing_service import ProposingService
from tests.api.training.training_service import JOBS

LABELS = ["dent"]
"""Of photographs that are added to those of `fill`: three good and three defective parts then."""


@pytest.fixture
def make_service(tmp_path, models):
    return lambda: ProposingService(tmp_path / "record", models)


@pytest.fixture
def service(make_service):
    with make_service() as client:
        client.data_set = client.fill()
        label(client)
        yield client


def label(service):
    for number, one in enumerate(LABELS, 21):
        service.add(f"labelled {number}", photograph_file(number).data, one)
    for number in (31, 32):
        service.add(f"new {number}", photograph_file(number).data)


def order(service, **asked):
    answer = service.post(f"{service.path}/proposals/training", json=asked)
    assert answer.status_code == 202, answer.text
    return answer.json()["latest"]["training_job"]


def show(service):
    answer = service.get(f"{service.path}/proposals/training")
    assert answer.status_code == 200, answer.text
    return answer.json()


def start_due(service):
    service.run(service.features._after_training.start_due)


def change(service, function, job_id, **values):
    service.run(lambda: service.features.training.write(lambda one: function(one, job_id, **values)))


def test_labels_train_a_model_that_proposes_the_rest(service, make_model):
    job_id = order(service)
    job = service.show(job_id)
    assert (job["model"], job["version"], job["state"], job["settings"]["minutes"]) == (
        *("brackets", "1", "queued", 2.0),
    )
    assert job["for_proposals"] and job["created_by"] == "ada"
    version = service.get(f"{service.path}/versions/{job['data_set_version']}").json()
    assert version["counts"]["photographs"] == 6
    shown = show(service)
    assert [shown[name] for name in ("needed_parts", "good_parts", "defective_parts", "unlabelled")] == (
        [3, 3, 3, 2]
    )
    assert (shown["latest"]["state"], shown["latest"]["job_state"]) == ("waiting", "queued")
    start_due(service)
    assert service.get(f"{service.path}/proposals").json() is None
    service.send_model(make_model("brackets", "1"))
    start_due(service)
    done = service.wait_for_proposals()
    assert (done["state"], done["model"], done["version"], done["proposed"]) == ("done", "brackets", "1", 2)
    assert done["started_by"] == "ada"
    start_due(service)
    assert show(service)["latest"]["state"] == "ended"
    assert service.show(job_id)["used"] is None
    who = {(one["what"], one["who"]) for one in service.get("/v1/audit").json()["changes"]}
    assert {("order a training", "ada"), ("propose labels", "ada")} <= who
    again = service.show(order(service, minutes=5))
    assert (again["model"], again["version"], again["settings"]["minutes"]) == ("brackets", "2", 5.0)


def test_the_service_starts_the_proposals_by_itself_also_after_a_restart(
    make_service, make_model, monkeypatch
):
    monkeypatch.setattr(proposals_after_training, "INTERVAL_S", 0.1)
    with make_service() as first:
        data_set = first.fill()
        label(first)
        order(first)
    with make_service() as second:
        second.data_set = data_set
        assert show(second)["latest"]["state"] == "waiting"
        second.send_model(make_model("brackets", "1"))
        assert second.wait_for_proposals()["proposed"] == 2


def test_a_run_that_the_service_ended_is_repeated_after_its_restart(make_service, make_model, monkeypatch):
    reached = threading.Event()

    async def wait(*_args):
        reached.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch, make_service() as first:
        patch.setattr(BackgroundInspector, "inspect", wait)
        data_set = first.fill()
        label(first)
        order(first)
        first.send_model(make_model("brackets", "1"))
        start_due(first)
        assert reached.wait(60)
        start_due(first)  # while it runs, nothing is started
        assert first.get(f"{first.path}/proposals").json()["state"] == "running"
        assert show(first)["latest"]["state"] == "started"
    with make_service() as second:
        second.data_set = data_set
        start_due(second)
        done = second.wait_for_proposals()
        assert (done["state"], done["proposed"]) == ("done", 2)
        start_due(second)
        assert show(second)["latest"]["state"] == "ended"


def test_a_model_that_makes_the_service_stop_does_not_do_so_for_ever(service, make_model):
    job_id = order(service)
    starts = proposals_after_training.MAX_STARTS
    change(service, change_order, job_id, starts=starts)
    service.send_model(make_model("brackets", "1"))
    start_due(service)
    latest = show(service)["latest"]
    assert latest["state"] == "failed"
    assert latest["error"].startswith(f"The service was stopped {starts} times")
    assert latest["error_cause"] == {"code": "proposals_stopped", "values": {"times": starts}}
    assert service.get(f"{service.path}/proposals").json() is None


def test_a_run_that_a_person_has_started_since_is_not_replaced(service, make_model):
    job_id = order(service)
    service.send_model(make_model("brackets", "1"))
    start_due(service)
    service.wait_for_proposals()
    change(service, change_order, job_id, state="started")
    done = service.propose(model="parts")
    start_due(service)
    assert show(service)["latest"]["state"] == "ended"
    assert service.get(f"{service.path}/proposals").json() == done


@pytest.mark.parametrize("state", ["cancelled", "failed"])
def test_a_training_without_a_model_proposes_nothing_and_says_so(service, make_model, state):
    job_id = order(service)
    change(service, change_job, job_id, state=state, reason="There are too few parts.")
    start_due(service)
    latest = show(service)["latest"]
    assert (latest["state"], latest["job_state"], latest["reason"]) == (
        *("waiting", state, "There are too few parts."),
    )
    assert service.get(f"{service.path}/proposals").json() is None
    if state == "failed":  # it can be continued, and its model proposes then
        assert service.post(f"{JOBS}/{job_id}/continue").status_code == 200
        service.send_model(make_model("brackets", "1"))
        start_due(service)
        assert service.wait_for_proposals()["proposed"] == 2
    else:
        assert order(service) != job_id


def test_if_people_were_faster_nothing_is_proposed_and_the_reason_is_shown(service, make_model):
    order(service)
    for one in service.get(f"{service.path}/photographs").json()["photographs"]:
        if one["label"] is None:
            body = {"label": "good", "based_on": None}
            service.put(f"{service.path}/photographs/{one['id']}/annotation", json=body)
    service.send_model(make_model("brackets", "1"))
    start_due(service)
    latest = show(service)["latest"]
    assert (latest["state"], latest["error"]) == (
        *("failed", "All photographs of the data set are labelled."),
    )


def test_hostile_and_useless_orders_start_nothing(make_service):
    with make_service() as service:
        service.data_set = service.fill()
        path = f"{service.path}/proposals/training"
        service.add("new", photograph_file(41).data)
        answer = service.post(path, json={})
        assert problem(answer) == (409, "too_few_labels")
        assert "3 good and 2 defective parts for training have a label" in answer.json()["detail"]
        for minutes in (0, -1, 1e-300, 1e9, "2 min", [2], True):
            assert service.post(path, json={"minutes": minutes}).status_code == 400, minutes
        body = b'{"minutes": NaN}'
        sent = service.post(path, content=body, headers={"Content-Type": "application/json"})
        assert sent.status_code == 400
        assert service.post(path, json={"data_set": 2}).status_code == 400
        for method in (service.get, lambda url: service.post(url, json={})):
            assert problem(method("/v1/data-sets/999/proposals/training")) == (404, "data_set_not_found")
        assert service.get(JOBS).json()["jobs"] == []
        label(service)
        order(service)
        assert problem(service.post(path, json={})) == (409, "training_running")
        assert len(service.get(JOBS).json()["jobs"]) == 1


def test_a_name_that_is_no_model_name_gets_one(make_service):
    with make_service() as service:
        service.data_set = service.fill("../ÄÖ <b>")
        label(service)
        assert service.show(order(service))["model"] == "b"
        service.data_set = service.fill("部品")
        label(service)
        assert service.show(order(service))["model"] == "parts"
