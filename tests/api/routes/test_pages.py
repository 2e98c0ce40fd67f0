import json
import re

import pytest

FILES = ("/static/page/page.js", "/static/page/page.css", "/docs/docs.js", "/docs/swagger/swagger-ui.css")


@pytest.mark.parametrize("path", ["/", "/docs", *FILES])
def test_pages_may_load_nothing_from_elsewhere(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'; img-src 'self' blob: data:;")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_unchanged_script_is_not_sent_again(client):
    tag = client.get("/static/page/page.js").headers["ETag"]
    again = client.get("/static/page/page.js", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/static/none.js", "/static/", "/static/%2e%2e/docs/docs.js", "/docs/none"])
def test_other_files_are_not_found(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_page_can_be_switched_off(make_app, serve):
    with serve(make_app(page=False)) as client:
        assert [client.get(path).status_code for path in ("/", "/static/page/page.js", "/docs")] == [404, 404, 200]


def test_api_pages_can_resolve_every_reference(client):
    document = client.get("/openapi.json").json()
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)))
    assert references
    for reference in references:
        found = document
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step, {})
        assert found, reference
