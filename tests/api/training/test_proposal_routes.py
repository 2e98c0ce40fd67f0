"""Labels that a model proposes for the photographs of a data set, in the background."""

import uuid

import numpy as np
import pytest

from segdec.errors import ImageError, SegdecError
from segdec.images import decode_mask_values, encode_png
from tests.api.conftest import PNG, StubPredictor, know_training, part_image, problem
from tests.api.training.proposing_service import ProposingClient

SETS = "/v1/data-sets"


@pytest.fixture
def engineer(tmp_path, predictor):
    with ProposingClient(tmp_path, predictor, unlike_training="reject") as client:
        make_set(client, ["dent", "scratch"])
        yield client


@pytest.fixture
def path(engineer):
    return engineer.path


def make_set(client, classes):
    """Makes the data set of the client; returns its path."""
    body = {"name": uuid.uuid4().hex, "classes": classes}
    client.data_set = client.post(SETS, json=body).json()["id"]
    return client.path


def picture(brightness):
    return encode_png(part_image(brightness=brightness))


def next_ones(client, path, count=5):
    answer = client.post(f"{path}/next", json={"session": "a tab", "count": count})
    return answer.json()["photographs"]


def test_the_closest_to_the_threshold_comes_first_with_its_mask(engineer, path):
    assert engineer.get(f"{path}/proposals").json() is None
    ids = {name: engineer.add(name, picture(level)) for name, level in {"sure": 250, "near": 130}.items()}
    engineer.add("labelled", picture(204), "good")
    done = engineer.propose()
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
    number = engineer.add("near", picture(130))
    engineer.propose()
    body = {"label": "scratch", "source": "proposed", "based_on": None}
    stored = engineer.put(f"{path}/photographs/{number}/annotation", json=body).json()
    assert (stored["label"], stored["proposal"]) == ("scratch", None)
    history = engineer.get(f"{path}/photographs/{number}/annotations").json()["annotations"]
    assert [one["source"] for one in history] == ["proposed"]
    assert problem(engineer.post(f"{path}/proposals", json={})) == (409, "nothing_unlabelled")


def test_proposals_are_not_counted_as_inspections(engineer):
    engineer.add("near", picture(130))
    engineer.propose()
    lines = engineer.get("/metrics").text.splitlines()
    counts = [float(line.split()[-1]) for line in lines if line.startswith("segdec_decisions_total{")]
    assert counts and not any(counts)
    assert engineer.get("/v1/records").json()["records"] == []


def test_a_photograph_that_cannot_be_inspected_is_left_out_and_named(engineer, path, predictor):
    engineer.add("one", picture(130))
    predictor.refusal = ImageError("It is not usable.", code="undecodable")
    done = engineer.propose()
    assert (done["state"], done["done"], done["proposed"], done["left_out"]) == ("done", 1, 0, 1)
    assert done["problem"] == "one: It is not usable."
    assert next_ones(engineer, path)[0]["proposal"] is None


def test_a_failing_model_ends_the_run_and_the_next_one_replaces_it(engineer, predictor):
    engineer.add("one", picture(130))
    predictor.failure = SegdecError("The weights are damaged.")
    done = engineer.propose()
    assert (done["state"], done["error"]) == ("failed", "The weights are damaged.")
    predictor.failure = None
    assert engineer.propose()["proposed"] == 1


def test_one_run_at_a_time_and_inspections_are_answered_meanwhile(engineer, path, predictor, part):
    for number in range(3):
        engineer.add(str(number), picture(130 + number))
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
    engineer.add("one", picture(130))
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
    with ProposingClient(tmp_path, predictor, unlike_training=unlike) as client:
        path = make_set(client, ["scratch"])
        for name, content in {"like": like, "black": black}.items():
            client.add(name, content)
        assert client.propose()["proposed"] == 2
        shown = next_ones(client, path)
    assert [one["name"] for one in shown] == ["black", "like"]
    proposal = shown[0]["proposal"]
    assert (proposal["label"], proposal["reason"]) == (label, "unlike_training")
    assert (proposal["score"] is None) == (label is None)


def test_photographs_like_each_other_or_like_a_labelled_one_come_later(engineer, path):
    noise = np.random.default_rng(0).integers(0, 172, (24, 40, 1), np.uint8)
    engineer.add("labelled", picture(171), "scratch")
    for name, brightness in {"near": 150, "sure": 170, "sure, too": 172}.items():
        engineer.add(name, picture(brightness))
    engineer.add("noise", encode_png(noise))
    assert engineer.propose()["proposed"] == 4
    shown = next_ones(engineer, path)
    assert [(one["name"], one["proposal"]["reason"]) for one in shown[:2]] == [
        ("noise", "different"),
        ("near", "uncertain"),
    ]
    assert {one["proposal"]["reason"] for one in shown[2:]} == {"sure"}


def test_a_labelled_photograph_that_cannot_be_decoded_does_not_end_the_run(engineer, monkeypatch):
    engineer.add("labelled", picture(204), "good")
    engineer.add("one", picture(130))

    async def refuse(*_):
        raise ImageError("It is not usable.", code="undecodable")

    monkeypatch.setattr(engineer.app.state.service.inspection.background_inspector, "measure", refuse)
    done = engineer.propose()
    assert (done["state"], done["proposed"], done["left_out"]) == ("done", 1, 0)
