import re

import pytest

from api import page_routes as pages
from api.http import page_list
from api.page_routes import STATIC
from segdec.encoders import COMPARED, ENCODERS
from tests.api.page_texts import PAGES

FILES = (
    "/static/inspect/inspect.js",
    "/static/languages/de.json",
    "/docs/docs.js",
    "/docs/swagger/swagger-ui.css",
)


@pytest.mark.parametrize("path", ["/", "/docs", *FILES])
def test_pages_may_load_nothing_from_elsewhere(unchanged, path):
    answer = unchanged.get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'; img-src 'self' blob: data:;")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_unchanged_script_is_not_sent_again(client):
    tag = client.get("/static/inspect/inspect.js").headers["ETag"]
    again = client.get("/static/inspect/inspect.js", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


def test_no_page_changes_the_case_of_class_names():
    styles = "".join(path.read_text() for path in sorted(STATIC.rglob("*.css")) if "vendor" not in path.parts)
    changing = re.findall(r"([^{}]+)\{[^{}]*text-transform", styles)
    assert [selector.strip() for selector in changing] == ["#statistics .note::first-letter"]  # sentences


def test_what_the_training_program_writes_is_marked_as_english():
    page = (STATIC / "train/index.html").read_text()
    assert re.search(r'<pre id="output" lang="en"', page)
    assert re.search(r'<a id="report" hreflang="en"', page)
    assert re.search(r'<img id="panel"[^>]* aria-describedby="panel-parts"', page)


@pytest.mark.parametrize("path", ["/static/none.js", "/static/", "/static/%2e%2e/docs/docs.js", "/docs/none"])
def test_other_files_are_not_found(unchanged, path):
    answer = unchanged.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("path", "above"), [("/nothing", ""), ("/parts/7/x", "../../"), ("/v1/nothing", "../")]
)
def test_browsers_get_a_page_for_an_unknown_address(unchanged, path, above):
    answer = unchanged.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert f'<base href="{above}">' in answer.text
    assert '<a class="button primary" href="./">' in answer.text
    assert path not in answer.text
    assert 'segdec_problems_total{code="not_found"' in unchanged.get("/metrics").text


@pytest.mark.parametrize(
    ("method", "accept"),
    [("GET", "*/*"), ("GET", "application/json, text/html"), ("POST", BROWSER["Accept"])],
)
def test_programs_get_a_problem_for_an_unknown_address(unchanged, method, accept):
    answer = unchanged.request(method, "/nothing", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


def test_a_service_without_pages_has_none_for_an_unknown_address(make_app, serve):
    with serve(make_app(page=False)) as client:
        assert client.get("/nothing", headers=BROWSER).json()["code"] == "not_found"


def test_page_can_be_switched_off(make_app, serve):
    with serve(make_app(page=False)) as client:
        assert [client.get(path).status_code for path in ("/", FILES[0], "/docs")] == [404, 404, 200]
        assert "<a" not in client.get("/docs").text


def test_the_api_page_links_to_the_others(make_app, serve):
    with serve(make_app()) as client:
        assert '<a href="./">' in client.get("/docs").text


LINKS = {
    "off": {"Inspection": ["./"], "Training": ["./models"], "Administration": ["./docs"]},
    "required": {
        "Inspection": ["./", "./line"],
        "Quality": ["./review", "./parts", "./trends", "./plan"],
        "Training": ["./datasets", "./train", "./models"],
        "Administration": ["./settings", "./changes", "./docs"],
    },
}


def links_of(page: str) -> dict[str, list[str]]:
    """Returns the addresses of the links to pages, by their group."""
    groups = re.findall(r'<div role="group" aria-label="(\w+)"[^>]*>(.*?)</div>', page)
    return {name: re.findall(r'<a href="([^"]+)"', links) for name, links in groups}


@pytest.mark.parametrize(("record", "links"), LINKS.items())
def test_pages_link_to_the_served_pages(make_app, serve, tmp_path, record, links):
    with serve(make_app(record=record, record_folder=tmp_path / "record")) as client:
        page = client.get("/").text
        assert links_of(page) == links
        assert '<a href="./" aria-current=page>' in page
        assert re.findall(r'<option value="(\w+)"[^>]*>(\w+)', page) == [("en", "English"), ("de", "Deutsch")]
        review = client.get("/review")
        assert review.status_code == (200 if record == "required" else 404)
        for path in ("/parts", "/parts/7", "/static/review/review.js", "/static/part/part.js"):
            assert client.get(path).status_code == review.status_code
        assert client.get(f"/parts/{5000 * '7'}").status_code == review.status_code


@pytest.mark.parametrize(
    ("page", "link"),
    [
        (page_list.PARTS, '"./parts" aria-current=page'),
        (page_list.PART, '"./parts" aria-current=true'),
        (page_list.LABEL, '"./datasets" aria-current=true data-needs=reviewer'),
    ],
)
def test_one_link_is_that_of_the_present_page_or_of_the_one_above(page, link):
    rendered = pages.render(page, page_list.RECORD_PAGES)
    assert rendered.count("aria-current") == 1
    assert f"<a href={link}>" in rendered


def test_a_group_of_pages_needs_the_lowest_role_of_its_pages():
    rendered = pages.render(page_list.INSPECTION, [*page_list.RECORD_PAGES, page_list.API])
    needed = re.findall(r'<div role="group" aria-label="\w+"(?: data-needs=(\w+))?>', rendered)
    assert needed == ["", "", "reviewer", "quality"]


def test_a_training_can_be_given_the_encoders_that_fit_compares(make_app, serve, tmp_path):
    with serve(make_app(record="required", record_folder=tmp_path / "record")) as client:
        (listed,) = re.findall(r'<datalist id="encoders"[^>]*>(.*)</datalist>', client.get("/train").text)
    assert re.findall(r"<option>(\w+)</option>", listed) == list(COMPARED)
    assert {"mobilenet", "dinov2_small"} < set(COMPARED) < set(ENCODERS)


def test_pages_have_the_time_zone_of_the_plant(make_app, serve, tmp_path, key_files):
    given = {"record_folder": tmp_path / "record", "record_zone": "Asia/Tokyo"}
    with serve(make_app(record="required", admin_keys=key_files["admin_keys"], **given)) as client:
        for path in ("/", "/parts", "/parts/7"):
            assert 'data-zone="Asia/Tokyo"' in client.get(path).text
        change, headers = {"value": "Europe/Berlin"}, {"X-API-Key": "admin"}
        client.request("PUT", "/v1/settings/record_zone", json=change, headers=headers).raise_for_status()
        assert 'data-zone="Europe/Berlin"' in client.get("/parts").text
    with serve(make_app(record="off", record_zone="Asia/Tokyo")) as client:
        assert "data-zone" not in client.get("/").text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.folder)
def test_pages_work_below_the_prefix_of_a_proxy(page):
    addresses = re.findall(r'(?:href|src)="([^"]+)"', pages.render(page, [*PAGES, page_list.API]))
    assert "static/shared/base.css" in addresses
    assert [address for address in addresses if address.startswith(("/", "http"))] == []


def test_page_below_another_loads_its_files_from_above():
    assert '<base href="../">' in pages.render(page_list.PART, [])
    assert "<base" not in pages.render(page_list.PARTS, [])
