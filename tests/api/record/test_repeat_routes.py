"""Which inspections get an earlier answer: same photograph, part, client, model, thresholds and verdict."""

from dataclasses import replace

import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient, part_image, problem


def serve(client, **identity):
    """Serves the stub's model with another name, version or manifest, in addition to other names."""
    models = client.app.state.service.inspection.models
    before = models.find()
    models.default = before.identity.name
    changed = before.identity.model_copy(update=identity)
    models.replace(changed.name, {changed.version: replace(before, identity=changed)})


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "shot-1"}], ids=["part", "key"])
@pytest.mark.parametrize(
    ("identity", "change", "label"),
    [
        ({"version": "2"}, {}, "scratch"),
        ({"sha256": "b" * 64}, {}, "scratch"),
        ({}, {"threshold": 0.9}, "good"),  # an administrator set another threshold
        ({}, {"review": 0.1}, "scratch"),
        ({}, {"prepare": lambda image: image // 2}, "good"),  # the same model, another verdict
    ],
)
def test_another_model_or_verdict_is_a_new_inspection(
    recorder, predictor, part, key, identity, change, label
):
    def inspect():
        return recorder.post("/v1/inspect?part_id=7", content=part, headers=PNG | key).json()

    before = recorder.app.state.service.inspection.models.find().identity.model_dump()
    original = {name: getattr(predictor, name) for name in change}
    answers = [inspect(), inspect()]
    serve(recorder, **identity)
    vars(predictor).update(change)
    answers += [inspect(), inspect()]
    serve(recorder, **before)  # as a rollback does
    vars(predictor).update(original)
    answers.append(inspect())
    assert [answer["repeated"] for answer in answers] == [False, True, False, True, True]
    first, _, changed, again, last = [answer["record_id"] for answer in answers]
    assert first == last != changed == again
    labels = [answer["decision"]["label"] for answer in answers]
    assert labels == ["scratch", "scratch", label, label, "scratch"]


def test_a_threshold_in_the_query_is_for_one_request(recorder, part):
    def inspect(query):
        url = f"/v1/inspect?part_id=7{query}"
        return recorder.post(url, content=part, headers=PNG).json()["decision"]["label"]

    labels = [inspect(query) for query in ("&threshold=1", "", "&threshold=1", "&threshold=0.5")]
    assert labels == ["good", "scratch", "good", "scratch"]
    assert len(recorder.get("/v1/records").json()["records"]) == 2


def test_a_key_with_another_request_is_rejected(recorder, part):
    key = {**PNG, "Idempotency-Key": "shot-1"}
    recorder.post("/v1/inspect", content=part, headers=key)
    serve(recorder, name="other")
    picture = encode_png(part_image(brightness=90))
    for path, body, difference in (
        ("inspect?station=b", picture, "picture and station"),
        ("inspect?part_id=7", part, "part_id"),
        ("models/other/inspect", part, "model"),
    ):
        refused = recorder.post(f"/v1/{path}", content=body, headers=key)
        assert problem(refused) == (422, "idempotency_mismatch")
        assert f"with another {difference}." in refused.json()["detail"]
    assert len(recorder.get("/v1/records").json()["records"]) == 1


def test_another_client_gets_its_own_inspection(make_app, folder, part, key_files):
    """Also with the same Idempotency-Key; a restart changes nothing."""
    found = []
    for client in ("api", "review", "api"):
        with ServiceClient(make_app(record="required", record_folder=folder, **key_files)) as service:
            for query, key in (("?part_id=7", {}), ("", {"Idempotency-Key": "shot-1"})):
                headers = PNG | {"X-API-Key": client} | key
                answer = service.post(f"/v1/inspect{query}", content=part, headers=headers).json()
                found.append((answer["record_id"], answer["repeated"]))
    assert found == [(1, False), (2, False), (3, False), (4, False), (1, True), (2, True)]
