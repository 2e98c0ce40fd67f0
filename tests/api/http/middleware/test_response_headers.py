"""How browsers and caches may use answers."""

from base64 import b64encode

from segdec.images import encode_png
from tests.api.conftest import PNG, part_image

REVALIDATED, IMMUTABLE = "private, no-cache", "private, max-age=86400, immutable"


def cache_control(answer):
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return answer.headers["Cache-Control"]


def test_pictures_are_kept_by_the_browser_alone_and_as_long_as_they_stay_the_same(recorder, part):
    recorder.post("/v1/inspect", content=part, headers=PNG)
    for path, expected in (
        ("image", IMMUTABLE),
        ("mask", IMMUTABLE),
        ("image?form=png", REVALIDATED),  # depend on the white level of the model that is served
        ("overlay?side=16", REVALIDATED),
    ):
        answer = recorder.get(f"/v1/records/1/{path}")
        assert (answer.status_code, cache_control(answer)) == (200, expected)
        assert answer.headers["Vary"] == "Authorization, X-API-Key"
    mask = {"png": b64encode(encode_png(part_image()[..., 0] * 0)).decode()}
    sent = {"label": "good", "mask": mask}
    assert recorder.request("PUT", "/v1/records/1/review", json=sent, headers={"If-Match": '"0"'}).is_success
    assert cache_control(recorder.get("/v1/records/1/mask?which=reviewed")) == REVALIDATED


def test_other_answers_are_kept_nowhere(unchanged, monkeypatch):
    monkeypatch.setattr(unchanged.app, "openapi", dict)  # to make it takes a second
    paths = ("models", "predict", "records/1/image")
    for path in ("/none", "/metrics", "/openapi.json", "/v2", "/livez", *(f"/v1/{path}" for path in paths)):
        assert cache_control(unchanged.get(path)) == "no-store"


def test_a_mask_as_an_answer_is_kept_nowhere(client, part):
    answer = client.post("/v1/predict", content=part, headers={**PNG, "Accept": "image/png"})
    assert (answer.headers["Content-Type"], cache_control(answer)) == ("image/png", "no-store")
