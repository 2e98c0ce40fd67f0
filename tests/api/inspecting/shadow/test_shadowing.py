"""Shadow mode: candidates inspect photographs, and clients are not affected."""

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

from api.app import create_app
from api.errors import RequestError
from api.inference.network_cost import NetworkCost
from api.inspecting.shadow import shadow_results as shadow_rows
from api.inspecting.shadow import shadowing
from api.inspecting.shadow.shadow_photograph import ShadowMemory, ShadowPhotograph
from api.settings import Settings
from segdec.images import encode_png
from segdec.schemas import ModelIdentity
from tests.api.conftest import PNG, ServiceClient, know_training, part_image
from tests.api.models.stub_models import NAME, StubModels

GOOD = encode_png(part_image(brightness=90))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Versions 1, stable, and 2, its candidate, which finds nothing."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    shelf.put("1")
    find_nothing(shelf.put("2"))
    shelf.set_aliases(stable="1", candidate="2")
    return shelf


def find_nothing(predictor):
    interpret = predictor.interpret
    predictor.interpret = lambda *asked, **words: interpret(*asked, **{**words, "threshold": 1.0})


@pytest.fixture
def make_client(shelf, folder):
    def make(**settings):
        words = {"models": shelf.folder, "batch_sizes": (1,), "record": "required", "record_folder": folder}
        return ServiceClient(create_app(Settings(**{**words, **settings})))

    return make


@pytest.fixture
def client(make_client, shelf):
    with make_client() as client:
        for predictor in shelf.predictors.values():  # what the warm-up noted is forgotten
            predictor.shapes.clear()
            predictor.entered = threading.Semaphore(0)
        yield client


def inspect(client, body, query=""):
    answer = client.post(f"/v1/inspect{query}", content=body, headers=PNG)
    assert answer.status_code == 200, answer.text
    return answer.json()


def report(client):
    (found,) = client.get("/v1/review/candidates").json()["candidates"]
    return found


def wait_for(condition):
    """Returns when the condition is true."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_differences_are_listed_for_the_candidate_of_a_model(client, part):
    record_id = inspect(client, part, "?part_id=7&station=cam")["record_id"]
    inspect(client, GOOD)
    wait_for(lambda: report(client)["answered"] == 2)
    path = f"/v1/review/candidates/{NAME}/differences"
    (found,) = client.get(path).json()["differences"]
    assert (found["record_id"], found["part_id"], found["station"]) == (record_id, "7", "cam")
    assert (found["serving"]["version"], found["serving"]["label"]) == ("1", "scratch")
    assert (found["candidate"]["version"], found["candidate"]["label"]) == ("2", "good")
    assert client.get(f"{path}?before={record_id}").json()["differences"] == []
    for query in ("before=0", "before=x", "limit=0", "limit=10001", f"before={10**30}"):
        assert client.get(f"{path}?{query}").status_code == 400
    unknown = client.get("/v1/review/candidates/other/differences")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "model_not_found")


def rows(folder, statement):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(statement)]


def skipped(client):
    return {reason: count for reason, count in report(client)["skipped"].items() if count}


# === Answers of a candidate ===


def test_candidate_inspects_photographs_without_effect_on_the_client(client, shelf, folder, part):
    answer = inspect(client, part)
    assert (answer["model"]["version"], answer["decision"]["label"]) == ("1", "scratch")
    wait_for(lambda: report(client)["answered"] == 1)
    (row,) = rows(folder, "SELECT * FROM shadows")
    assert (row["record_id"], row["model"], row["version"]) == (answer["record_id"], NAME, "2")
    assert (row["label"], row["score"], row["differs"]) == ("good", pytest.approx(0.8), 1)
    assert row["inspected_at"] == rows(folder, "SELECT inspected_at FROM inspections")[0]["inspected_at"]
    assert shelf.predictors["2"].shapes == [(1, 24, 40, 1)]
    answered = 'segdec_shadow_answered_total{model="parts",version="2"} 1.0'
    wait_for(lambda: answered in client.get("/metrics").text.splitlines())  # it is counted after it is stored
    lines = client.get("/metrics").text.splitlines()
    assert 'segdec_shadow_differing_total{model="parts",version="2"} 1.0' in lines
    assert 'segdec_shadow_skipped_total{model="parts",reason="busy",version="2"} 0.0' in lines
    infer_ms = 'segdec_infer_milliseconds_count{model="parts",version="2"}'
    assert not any(line.startswith(infer_ms) for line in lines)
    assert "segdec_batch_size_count 1.0" in lines


def test_repeated_inspections_and_predictions_are_not_shadowed(client, shelf, part):
    for _ in range(3):
        inspect(client, part, "?part_id=7")
    client.post("/v1/predict", content=part, headers=PNG)
    inspect(client, GOOD)
    wait_for(lambda: report(client)["answered"] == 2)
    assert len(shelf.predictors["2"].shapes) == 2 and skipped(client) == {}


def test_candidate_with_another_input_prepares_the_photograph_itself(client, shelf, folder, part):
    candidate = shelf.predictors["2"]
    other = candidate.config.input.model_copy(update={"convert_color": True})
    candidate.config = candidate.config.model_copy(update={"input": other})
    candidate.prepare = lambda image: np.repeat(image, 2, axis=0)
    candidate.interpret = lambda _, row, size, **words: shelf.predictors["1"].interpret(
        _, row, (2 * size[0], size[1]), **words
    )
    inspect(client, part)
    inspect(client, part, "?threshold=0.9")
    wait_for(lambda: report(client)["answered"] == 2)
    assert candidate.shapes == 2 * [(1, 48, 40, 1)]
    said = rows(folder, "SELECT label, differs FROM shadows ORDER BY record_id")
    assert said == [{"label": "scratch", "differs": 0}, {"label": "good", "differs": 0}]


def test_candidate_with_another_white_level_is_skipped(client, shelf, part):
    config = shelf.predictors["2"].config
    other = config.input.model_copy(update={"white_level": 4095})
    shelf.predictors["2"].config = config.model_copy(update={"input": other})
    inspect(client, part)
    assert skipped(client) == {"white_level": 1}


def test_what_a_candidate_does_not_inspect_is_counted_as_a_difference(client, shelf, grey_training):
    like, black = know_training(shelf.predictors["2"], grey_training)
    inspect(client, like)
    number = inspect(client, black)["record_id"]
    wait_for(lambda: report(client)["answered"] == 2)
    found = report(client)
    assert (found["differing"], found["not_inspected"], skipped(client)) == (1, 1, {})
    assert len(shelf.predictors["2"].shapes) == 1
    (task,) = client.post("/v1/review/next", json={"session": "mine"}).json()["tasks"]
    assert (task["record"]["record_id"], task["why"]) == (number, "candidate_differs")
    shadow = {"model": NAME, "version": "2", "label": "not_inspected", "score": None}
    assert task["shadows"] == [shadow]
    body, headers = {"label": "good", "session": "mine"}, {"If-Match": '"0"'}
    client.request("PUT", f"/v1/records/{number}/review", json=body, headers=headers)
    assert report(client)["reviewed"] == {"candidate": 0, "serving": 1, "neither": 0, "unsure": 0}
    lines = client.get("/metrics").text.splitlines()
    assert 'segdec_shadow_not_inspected_total{model="parts",version="2"} 1.0' in lines


def test_a_candidate_does_not_inspect_another_surface(client, shelf, surface_training):
    like, _ = know_training(shelf.predictors["2"], surface_training)
    shelf.predictors["2"].surface = np.array([0.11, 0.3], np.float32)
    inspect(client, like)
    wait_for(lambda: report(client)["answered"] == 1)
    assert report(client)["not_inspected"] == 1


def test_a_candidate_has_what_is_unlike_its_training_for_review(client, shelf, grey_training):
    know_training(shelf.predictors["2"], grey_training)
    inspect(client, encode_png(np.full((32, 48, 1), 60, np.uint8)))
    wait_for(lambda: report(client)["answered"] == 1)
    assert (report(client)["differing"], report(client)["not_inspected"]) == (1, 0)
    (task,) = client.post("/v1/review/next", json={"session": "mine"}).json()["tasks"]
    assert (task["why"], task["shadows"][0]["label"]) == ("candidate_differs", "review")


def test_a_candidate_inspects_what_the_stable_model_does_not(client, shelf, grey_training):
    _, black = know_training(shelf.predictors["1"], grey_training)
    answer = client.post("/v1/inspect", content=black, headers=PNG)
    assert (answer.status_code, answer.json()["code"]) == (422, "unlike_training")
    wait_for(lambda: report(client)["answered"] == 1)
    assert (report(client)["differing"], report(client)["not_inspected"]) == (1, 0)
    (task,) = client.post("/v1/review/next", json={"session": "mine"}).json()["tasks"]
    assert (task["why"], task["shadows"][0]["label"]) == ("not_inspected", "good")
    body, headers = {"label": "good", "session": "mine"}, {"If-Match": '"0"'}
    client.request("PUT", "/v1/records/1/review", json=body, headers=headers)
    assert report(client)["reviewed"]["candidate"] == 1
    memory = client.app.state.service.inspection.shadowing._photograph_memory
    wait_for(lambda: memory.reserved_bytes == 0)


def test_a_candidate_inspects_everything_if_that_is_only_a_warning(make_client, shelf, grey_training):
    _, black = know_training(shelf.predictors["2"], grey_training)
    with make_client(unlike_training="warn") as client:
        inspect(client, black)
        wait_for(lambda: report(client)["answered"] == 1)
        assert (report(client)["differing"], report(client)["not_inspected"]) == (1, 0)  # for review


def test_without_a_record_nothing_is_shadowed(make_client, shelf, part):
    with make_client(record="off") as client:
        shapes = len(shelf.predictors["2"].shapes)
        inspect(client, part)
        assert client.app.state.service.inspection.shadowing._task is None
        assert client.get("/v1/review/candidates").status_code == 404
    assert len(shelf.predictors["2"].shapes) == shapes


def test_only_the_current_candidate_is_listed(client, shelf):
    found = report(client)
    assert (found["model"]["version"], found["serving"], found["since"]) == ("2", "1", None)
    assert found["reviewed"] == {"candidate": 0, "serving": 0, "neither": 0, "unsure": 0}
    shelf.set_aliases(stable="1")
    client.run(lambda: client.app.state.service.inspection.reload(NAME))
    assert client.get("/v1/review/candidates").json() == {"candidates": []}


# === Only while the service is idle ===


class Pauses:
    """The pauses before a candidate runs: the test ends each of them."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self._end = threading.Semaphore(0)

    async def __call__(self, _):
        self.begun.release()
        assert await asyncio.to_thread(self._end.acquire, timeout=30)

    def end(self, count=1):
        """Ends `count` pauses."""
        self._end.release(count)


@pytest.fixture
def pace(client):
    """Controls the pauses of the client's service."""
    pace = client.app.state.service.inspection.shadowing._sleep = Pauses()
    yield pace
    pace.end(1000)


@pytest.mark.parametrize("step", ["infer", "store"])
def test_no_candidate_runs_during_a_request(client, shelf, pace, monkeypatch, part, step):
    record, entered, proceed = client.app.state.service.recording.record, threading.Event(), threading.Event()
    stable, store, infer = shelf.predictors["1"], record.store, shelf.predictors["1"].infer

    async def slow_store(*inspection):
        entered.set()
        assert await asyncio.to_thread(proceed.wait, 30)
        return await store(*inspection)

    def slow_infer(prepared):
        entered.set()
        assert proceed.wait(30)
        return infer(prepared)

    inspect(client, part)
    assert pace.begun.acquire(timeout=30)
    place, slow = (stable, slow_infer) if step == "infer" else (record, slow_store)
    monkeypatch.setattr(place, step, slow)
    asking = threading.Thread(target=inspect, args=(client, part))
    asking.start()
    assert entered.wait(30)
    for _ in range(3):  # it checks again and again
        pace.end()
        assert pace.begun.acquire(timeout=30)
    assert shelf.predictors["2"].shapes == []
    proceed.set()
    asking.join()
    pace.end(1000)
    wait_for(lambda: report(client)["answered"] == 2)


def test_no_candidate_runs_after_a_request_during_the_pause(client, shelf, pace, part):
    inspect(client, part)
    assert pace.begun.acquire(timeout=30)
    client.post("/v1/predict", content=part, headers=PNG)
    pace.end()
    assert pace.begun.acquire(timeout=30)
    assert shelf.predictors["2"].shapes == []
    pace.end()
    wait_for(lambda: report(client)["answered"] == 1)


@pytest.mark.parametrize(
    ("bound", "seen"),
    [({"MAX_WAITING": 2}, 3), ({"MEMORY_SHARE": 2 * 960 / 2**32}, 2), ({"MEMORY_SHARE": 0}, 1)],
)
def test_queue_is_limited_and_skipped_photographs_are_counted(make_client, monkeypatch, part, bound, seen):
    """One of 960 bytes is in work; those that wait are limited by number and by memory."""
    for name, value in bound.items():
        monkeypatch.setattr(shadowing, name, value)
    with make_client(memory_bytes=2**32) as client:
        pace = client.app.state.service.inspection.shadowing._sleep = Pauses()
        inspect(client, part)
        assert pace.begun.acquire(timeout=30)
        for _ in range(4):
            inspect(client, part)
        pace.end(1000)
        wait_for(lambda: report(client)["answered"] == seen)
        assert skipped(client) == {"busy": 5 - seen}
        assert client.app.state.service.inspection.shadowing._photograph_memory.reserved_bytes == 0


def test_photograph_that_needs_too_much_memory_is_skipped(client, part):
    models = client.app.state.service.inspection.models
    candidate = replace(models.candidate(NAME), cost=NetworkCost(base_bytes=1e15))
    models.replace(NAME, {**models.versions(NAME), "2": candidate})
    inspect(client, part)
    wait_for(lambda: skipped(client) == {"too_large": 1})
    assert inspect(client, part)["decision"]["label"] == "scratch"


def test_replaced_candidate_does_not_run(client, shelf, pace, part):
    inspect(client, part)
    shelf.set_aliases(stable="1")
    client.run(lambda: client.app.state.service.inspection.reload(NAME))
    pace.end(1000)
    line = 'segdec_shadow_skipped_total{model="parts",reason="replaced",version="2"} 1.0'
    wait_for(lambda: line in client.get("/metrics").text)
    assert shelf.predictors["2"].shapes == []


def test_released_shadow_photograph_accepts_no_image():
    """A thread may decode after its client has disconnected."""
    memory = ShadowMemory(1000)
    identity = ModelIdentity(name=NAME, version="2", sha256=None)
    gone, whole = (ShadowPhotograph(identity, True, None, memory) for _ in range(2))
    gone.release()
    gone.set_image(part_image(), part_image())
    assert gone.image is None and memory.reserved_bytes == 0
    whole.set_image(part_image(), part_image()[:8])
    assert memory.reserved_bytes == 960 and whole.size == (24, 40)
    whole.release()
    whole.release()
    assert memory.reserved_bytes == 0


# === Failures ===


def test_failing_candidate_is_logged_once_and_counted(client, shelf, caplog, part):
    shelf.predictors["2"].failure = ValueError("of the candidate")
    for _ in range(3):
        assert inspect(client, part)["decision"]["label"] == "scratch"
    wait_for(lambda: skipped(client) == {"failed": 3})
    logged = [line for line in caplog.records if line.name == "api.inspecting.shadow.shadowing"]
    assert len(logged) == 1 and "of the candidate" in caplog.text
    shelf.predictors["2"].failure = None
    inspect(client, part)
    wait_for(lambda: report(client)["answered"] == 1)


def test_answers_that_cannot_be_stored_are_counted(client, monkeypatch, caplog, part):
    def fail(*_):
        raise OperationalError("INSERT", {}, Exception("no"))

    with monkeypatch.context() as patched:
        patched.setattr(shadow_rows, "add_shadow_results", fail)
        for number in (1, 2):
            inspect(client, part)
            wait_for(lambda count=number: skipped(client) == {"not_recorded": count})
    assert [line.levelname for line in caplog.records if line.name == "api.inspecting.shadow.shadowing"] == [
        "WARNING"
    ]
    inspect(client, part)
    wait_for(lambda: report(client)["answered"] == 1)


def test_inspection_without_a_record_is_not_shadowed(make_client, monkeypatch, part):
    async def fail(*_):
        raise RequestError(503, "record_unavailable", "It is gone.")

    with make_client(record="best-effort") as client:
        with monkeypatch.context() as patched:
            patched.setattr(client.app.state.service.recording.record, "store", fail)
            assert inspect(client, part)["record_id"] is None
        assert skipped(client) == {"not_recorded": 1}


def test_service_ends_while_shadow_photographs_wait(make_client, part):
    with make_client() as client:
        client.app.state.service.inspection.shadowing._sleep = lambda _: asyncio.Event().wait()
        for _ in range(3):
            inspect(client, part)
    assert client.app.state.service.inspection.shadowing._task.cancelled()
