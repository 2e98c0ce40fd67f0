"""Answers in the language that a request prefers."""

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from fastapi.testclient import TestClient

from api.http.middleware.translation import TranslationMiddleware, preferred_language

ENGLISH = {"warnings": ["the file has several pictures; the first one was used"]}
GERMAN = {"warnings": ["Die Datei hat mehrere Bilder; das erste wurde verwendet"]}


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,de;q=0.9", "en"),
        ("xx, de;q=0.5, en;q=0.4", "de"),
        ("de;q=0", "en"),
        ("de;q=9.9.9, ;;,*", "de"),
    ],
)
def test_the_most_preferred_known_language_is_chosen(header, code):
    assert preferred_language(header) == code


@pytest.fixture
def client():
    app = FastAPI()
    app.add_middleware(TranslationMiddleware)

    @app.get("/answer")
    def answer() -> JSONResponse:
        return JSONResponse(ENGLISH)

    @app.get("/file")
    def save() -> JSONResponse:
        return JSONResponse(ENGLISH, headers={"Content-Disposition": "attachment"})

    @app.get("/part")
    def send_part() -> Response:
        return Response(b'{"warn', 206, {"Content-Range": "bytes 0-5/9"}, "application/json")

    @app.get("/damaged")
    def send_damaged() -> Response:
        return Response(b'{"warn', media_type="application/json")

    @app.get("/large")
    def send_large() -> JSONResponse:
        return JSONResponse({**ENGLISH, "data": "x" * 2**20})

    return TestClient(app)


@pytest.mark.parametrize("path", ["part", "damaged", "large"])
def test_other_answers_are_sent_as_they_are(client, path):
    german = client.get(f"/{path}", headers={"Accept-Language": "de"})
    english = client.get(f"/{path}")
    assert (german.status_code, german.content) == (english.status_code, english.content)
    assert "Content-Language" not in german.headers


def test_only_answers_to_requests_in_german_are_translated(client):
    assert client.get("/answer").json() == ENGLISH
    answer = client.get("/answer", headers={"Accept-Language": "de"})
    assert answer.json() == GERMAN
    assert answer.headers["Content-Language"] == "de" and answer.headers["Vary"] == "Accept-Language"
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_files_stay_in_english(client):
    assert client.get("/file", headers={"Accept-Language": "de"}).json() == ENGLISH
