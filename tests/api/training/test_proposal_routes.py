"""Labels that a model proposes for the photographs of a data set, in the background."""

import time
import uuid

import numpy as np
import pytest

from segdec.errors import ImageError, SegdecError
from segdec.images import decode_mask_values, encode_png
from tests.api.conftest import PNG, StubPredictor, know_training, part_image, problem
from tests.api.engineer_client import EngineerClient

SETS = "/v1/data-sets"


@pytest.fixture
def engineer(tmp_path, predictor):
    with EngineerClient(tmp_path, predictor, unlike_training="reject") as client:
        yield client


@pytest.fixture
def path(engineer):
    return make_set(engineer, ["dent", "scratch"])


def make_set(client, classes):
    body = {"name": uuid.uuid4().hex, "classes": classes}
    return f"{SETS}/{client.post(SETS, json=body).json()['id']}"


def add(client, path, name, brightness):
    """Adds a photograph; returns its id."""
    pixels = encode_png(part_image(brightness=brightness))
    sent = client.post(f"{path}/photographs?name={name}", content=pixels, headers=PNG)
    return sent.json()["photograph"]["id"]


def propose(client, path, **asked):
    """Starts a run and waits for its end."""
    started = client.post(f"{path}/proposals", json=asked)
    assert started.status_code == 202, started.json()
    for _ in range(3000):
        shown = client.get(f"{path}/proposals").json()
        if shown["state"] != "running":
            return shown
        time.sleep(0.05)
    raise AssertionError(shown)


def next_ones(client, path, count=5):
    answer = client.post(f"{path}/next", json={"session": "a tab", "count": count})
    return answer.json()["photographs"]


def test_the_closest_to_the_threshold_comes_first_with_its_mask(engineer, path):
    assert engineer.get(f"{path}/proposals").json() is None
    ids = {
        name: add(engineer, path, name, brightness) for name, brightness in {"sure": 250, "near": 130}.items()
    }
    labelled = add(engineer, path, "labelled", 204)
    body = {"label": "good", "based_on": None}
    engineer.put(f"{path}/photographs/{labelled}/annotation", json=body)
    done = propose(engineer, path)
    assert (done["state"], done["photographs"], done["proposed"], done["left_out"]) == ("done", 2, 2, 0)
    assert (done["model"], done["version"], done["error"]) == ("unnamed", "0", None)
    shown = next_ones(engineer, path)
    assert [one["name"] for one in shown] == ["near", "sure"]
    assert shown[0]["proposal"] == {
        **{"label": "scratch", "score": pytest.approx(130 / 255), "reason": "uncertain"},
        **{"model": "unnamed", "version": "0", "has_mask": True},
    }
    assert shown[1]["proposal"]["reason"] == "sure"
    answer = engineer.get(f"{path}/photographs/{ids['near']}/proposal/mask")
    assert answer.headers["content-type"] == "image/png"
    mask = decode_mask_values(answer.content, "mask", max_pixels=960, classes=[1, 2])
    assert (mask[8:12, 10:16] == 2).all() and (mask > 0).sum() == 24
    assert shown[0]["label"] is None and shown[0]["annotation_id"] is None, "a proposal is no annotation"
    assert engineer.get(path).json()["counts"]["unlabelled"] == 2


def test_an_accepted_proposal_is_an_annotation_and_the_proposal_is_gone(engineer, path):
    number = add(engineer, path, "near", 130)
    propose(engineer, path)
    body = {"label": "scratch", "source": "proposed", "based_on": None}
    stored = engineer.put(f"{path}/photographs/{number}/annotation", json=body).json()
    assert (stored["label"], stored["proposal"]) == ("scratch", None)
    history = engineer.get(f"{path}/photographs/{number}/annotations").json()["annotations"]
    assert [one["source"] for one in history] == ["proposed"]
    assert problem(engineer.post(f"{path}/proposals", json={})) == (409, "nothing_unlabelled")


def test_proposals_are_not_counted_as_inspections(engineer, path):
    add(engineer, path, "near", 130)
    propose(engineer, path)
    lines = engineer.get("/metrics").text.splitlines()
    counts = [float(line.split()[-1]) for line in lines if line.startswith("segdec_decisions_total{")]
    assert counts and not any(counts)
    assert engineer.get("/v1/records").json()["records"] == []


def test_a_photograph_that_cannot_be_inspected_is_left_out_and_named(engineer, path, predictor):
    add(engineer, path, "one", 130)
    predictor.refusal = ImageError("It is not usable.", code="undecodable")
    done = propose(engineer, path)
    assert (done["state"], done["done"], done["proposed"], done["left_out"]) == ("done", 1, 0, 1)
    assert done["problem"] == "one: It is not usable."
    assert next_ones(engineer, path)[0]["proposal"] is None


def test_a_failing_model_ends_the_run_and_the_next_one_replaces_it(engineer, path, predictor):
    add(engineer, path, "one", 130)
    predictor.failure = SegdecError("The weights are damaged.")
    done = propose(engineer, path)
    assert (done["state"], done["error"]) == ("failed", "The weights are damaged.")
    predictor.failure = None
    assert propose(engineer, path)["proposed"] == 1


def test_one_run_at_a_time_and_inspections_are_answered_meanwhile(engineer, path, predictor, part):
    for number in range(3):
        add(engineer, path, str(number), 130 + number)
    predictor.block()
    started = engineer.post(f"{path}/proposals", json={})
    assert started.status_code == 202 and started.json()["state"] == "running"
    assert predictor.entered.acquire(timeout=30)
    assert problem(engineer.post(f"{path}/proposals", json={})) == (409, "job_running")
    predictor.gate.set()
    assert engineer.post("/v1/predict", content=part, headers=PNG).status_code == 200


def test_hostile_requests_start_nothing(engineer, path):
    start = f"{path}/proposals"
    assert problem(engineer.post(start, json={"model": "other"})) == (404, "model_not_found")
    assert problem(engineer.post(start, json={"version": "9"})) == (404, "version_not_found")
    assert problem(engineer.post(start, json={"model": "../x"}))[0] in (400, 404)
    assert engineer.post(start, json={"model": ["unnamed"]}).status_code == 400
    assert engineer.post(start, json={"threshold": 0}).status_code == 400
    assert engineer.post(start, content=b"{}", headers=PNG).status_code == 415
    assert problem(engineer.post(start, json={})) == (409, "nothing_unlabelled")
    empty = make_set(engineer, [])
    add(engineer, empty, "one", 130)
    assert problem(engineer.post(f"{empty}/proposals", json={})) == (409, "no_classes")
    assert problem(engineer.post(f"{SETS}/999/proposals", json={})) == (404, "data_set_not_found")
    assert problem(engineer.get(f"{path}/photographs/999/proposal/mask")) == (404, "photograph_not_found")
    other = engineer.get(f"{path}/photographs/1/proposal/mask")  # of the other data set
    assert problem(other) == (404, "photograph_not_found")
    assert problem(engineer.get(f"{empty}/photographs/1/proposal/mask")) == (404, "no_mask")
    assert engineer.get(start).json() is None


@pytest.mark.parametrize(("unlike", "label"), [("reject", None), ("warn", "good")])
def test_a_photograph_unlike_the_training_is_the_first_one(tmp_path, grey_training, unlike, label):
    predictor = StubPredictor()
    like, black = know_training(predictor, grey_training)
    with EngineerClient(tmp_path, predictor, unlike_training=unlike) as client:
        path = make_set(client, ["scratch"])
        for name, content in {"like": like, "black": black}.items():
            client.post(f"{path}/photographs?name={name}", content=content, headers=PNG)
        assert propose(client, path)["proposed"] == 2
        shown = next_ones(client, path)
    assert [one["name"] for one in shown] == ["black", "like"]
    proposal = shown[0]["proposal"]
    assert (proposal["label"], proposal["reason"]) == (label, "unlike_training")
    assert (proposal["score"] is None) == (label is None)


def test_photographs_like_each_other_or_like_a_labelled_one_come_later(engineer, path):
    noise = np.random.default_rng(0).integers(0, 172, (24, 40, 1), np.uint8)
    labelled = add(engineer, path, "labelled", 171)
    for name, brightness in {"near": 150, "sure": 170, "sure, too": 172}.items():
        add(engineer, path, name, brightness)
    engineer.post(f"{path}/photographs?name=noise", content=encode_png(noise), headers=PNG)
    body = {"label": "scratch", "based_on": None}
    engineer.put(f"{path}/photographs/{labelled}/annotation", json=body)
    assert propose(engineer, path)["proposed"] == 4
    shown = next_ones(engineer, path)
    assert [(one["name"], one["proposal"]["reason"]) for one in shown[:2]] == [
        ("noise", "different"),
        ("near", "uncertain"),
    ]
    assert {one["proposal"]["reason"] for one in shown[2:]} == {"sure"}


def test_a_labelled_photograph_that_cannot_be_decoded_does_not_end_the_run(engineer, path, monkeypatch):
    labelled = add(engineer, path, "labelled", 204)
    engineer.put(f"{path}/photographs/{labelled}/annotation", json={"label": "good", "based_on": None})
    add(engineer, path, "one", 130)

    async def refuse(*_):
        raise ImageError("It is not usable.", code="undecodable")

    monkeypatch.setattr(engineer.app.state.service.inspection.background_inspector, "measure", refuse)
    done = propose(engineer, path)
    assert (done["state"], done["proposed"], done["left_out"]) == ("done", 1, 0)
