"""Log and metrics of failed requests: the problem, the key, the number of photographs."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from uvicorn.middleware.proxy_headers import _TrustedHosts

from api.listener.server import make_uvicorn_config
from tests.api.conftest import PNG
from tests.api.live_server import served


@pytest.fixture
def keyed(serve, make_app, key_files) -> Iterator[Any]:
    """A client of a service with the keys `api` and `review`."""
    with serve(make_app(api_keys=key_files["api_keys"], review_keys=key_files["review_keys"])) as client:
        yield client


def counted(client: Any, name: str) -> dict[str, float]:
    """The series of a counter that are not zero, without its name."""
    lines = client.get("/metrics").text.splitlines()
    series = (line.removeprefix(name).rsplit(" ", 1) for line in lines if line.startswith(f"{name}{{"))
    return {labels: float(value) for labels, value in series if float(value)}


# === One photograph ===


def test_failing_camera_is_logged_as_a_warning_by_default(keyed, logged, part, caplog):
    headers = {**PNG, "X-API-Key": "review", "X-Request-ID": "r-1"}
    assert keyed.post("/v1/predict", content=part[:60], headers=headers).status_code == 422
    keyed.get("/nothing")
    line, _ = logged()
    records = [record for record in caplog.records if record.name == "api.http.middleware.access"]
    assert [record.levelname for record in records] == ["WARNING", "INFO"]
    assert line == {
        "request_id": "r-1",
        "client": "127.0.0.1",
        "method": "POST",
        "path": "/v1/predict",
        "status": 422,
        "problem": "truncated_image",
        "key": "review",
    }


def test_problems_and_photographs_are_counted_by_key(keyed, part):
    started = [
        line for line in keyed.get("/metrics").text.splitlines() if "segdec_photographs_total{" in line
    ]
    assert len(started) == 9  # otherwise the first rejection is not an increase
    sent = (("api", part), ("api", part), ("review", part), ("review", part[:60]), ("x", b""), ("y", b""))
    for key, content in sent:
        keyed.post("/v1/predict", content=content, headers={**PNG, "X-API-Key": key})
    assert counted(keyed, "segdec_problems_total") == {
        '{code="truncated_image",key="review",status="422"}': 1,
        '{code="unknown_key",key="",status="401"}': 2,
    }
    assert counted(keyed, "segdec_photographs_total") == {
        '{key="api",result="inspected"}': 2,
        '{key="review",result="inspected"}': 1,
        '{key="review",result="refused"}': 1,
        '{key="",result="refused"}': 2,
    }


def test_values_of_clients_make_no_new_series(client):
    client.get("/nothing", headers={"X-API-Key": "0"})
    client.get("/metrics")
    before = len(client.get("/metrics").text.splitlines())
    for number in range(20):
        headers = {"X-API-Key": f"{number}", "X-Request-ID": f"{number}"}
        client.get(f"/nothing/{number}", headers=headers)
    assert len(client.get("/metrics").text.splitlines()) == before


# === Several photographs in one request ===


def test_each_rejected_photograph_of_a_batch_is_counted_and_logged(client, logged, part):
    files = [("a.png", part), ("b\n.png", part[:60]), ("c.txt", b"text"), ("d.png", part[:70])]
    headers = {"X-Request-ID": "r-1"}
    answer = client.post("/v1/predict/batch", files=[("file", file) for file in files], headers=headers)
    assert answer.status_code == 200
    assert counted(client, "segdec_problems_total") == {
        '{code="truncated_image",key="",status="422"}': 2,
        '{code="unsupported_type",key="",status="422"}': 1,
    }
    assert counted(client, "segdec_photographs_total") == {
        '{key="",result="inspected"}': 1,
        '{key="",result="refused"}': 3,
    }
    names = [item["name"] for item in answer.json()["items"]]
    shared = {"request_id": "r-1", "client": "127.0.0.1", "method": "POST"}
    shared |= {"path": "/v1/predict/batch", "status": 422}
    assert logged() == [
        {**shared, "problem": "truncated_image", "photograph": names[1]},
        {**shared, "problem": "unsupported_type", "photograph": "c.txt"},
        {**shared, "problem": "truncated_image", "photograph": "d.png"},
    ]


def test_photographs_of_the_open_inference_protocol_are_counted_each(client, part):
    for contents in ([part] * 3, [part, part[:60]]):
        data = [base64.b64encode(content).decode() for content in contents]
        image = {"name": "image", "datatype": "BYTES", "shape": [len(data)], "data": data}
        client.post("/v2/models/unnamed/infer", json={"inputs": [image]})
    assert counted(client, "segdec_photographs_total") == {
        '{key="",result="inspected"}': 3,
        '{key="",result="refused"}': 2,
    }


# === Which requests are logged ===


def test_health_checks_and_rejections_under_load_are_not_logged_by_default(serve, make_app, logged, part):
    with serve(make_app(rate_limit=0.001, rate_burst=1)) as client:
        client.app.state.service.drain()
        for _ in range(3):
            client.get("/readyz")
            client.post("/v1/predict", content=part, headers=PNG)
        assert logged() == []
        client.get("/v1/models")
        assert [line["problem"] for line in logged()] == ["rate_limit"]


@pytest.mark.parametrize("access_log", [False, True])
def test_rejected_photographs_of_a_batch_under_load_are_logged_with_access_log(
    serve, make_app, logged, part, access_log
):
    files = [("file", ("a.png", part)), ("file", ("b.png", part))]
    with serve(make_app(access_log=access_log)) as client:
        answer = client.post("/v1/predict/batch", files=files, headers={"X-Deadline-Ms": "1e-6"})
        assert [item["problem"]["code"] for item in answer.json()["items"]] == ["deadline_passed"] * 2
        assert counted(client, "segdec_photographs_total") == {'{key="",result="failed"}': 2}
    names = [line.get("photograph") for line in logged() if line["path"] == "/v1/predict/batch"]
    assert names == ([None, "a.png", "b.png"] if access_log else [])


# === Whose request it was ===


@pytest.mark.parametrize(("trusted", "warned"), [("", 1), ("127.0.0.1", 0)])
def test_a_proxy_that_is_not_trusted_is_reported_once(make_app, caplog, trusted, warned):
    with served(make_app(trusted_proxies=trusted)) as (host, port):
        for headers in ({}, {"X-Forwarded-For": "203.0.113.9"}, {"X-Forwarded-Proto": "https"}):
            httpx.get(f"http://{host}:{port}/livez", headers=headers, trust_env=False)
    lines = [record.getMessage() for record in caplog.records if "--trusted-proxies" in record.getMessage()]
    assert len(lines) == warned
    assert all("127.0.0.1" in line for line in lines)


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [
        ("", "127.0.0.1"),
        ("192.0.2.7", "127.0.0.1"),
        ("127.0.0.1", "10.1.2.3"),
        ("192.0.2.7, 127.0.0.0/8", "10.1.2.3"),
        ("127.0.0.1,10.0.0.0/8", "203.0.113.9"),
    ],
)
def test_address_of_a_client_comes_from_trusted_proxies_alone(
    make_app, logged, monkeypatch, trusted, expected
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn's own variable does not count
    with served(make_app(trusted_proxies=trusted)) as (host, port):
        headers = {"X-Forwarded-For": "203.0.113.9, 10.1.2.3"}
        httpx.get(f"http://{host}:{port}/nothing", headers=headers, trust_env=False)
    assert [line["client"] for line in logged()] == [expected]


def test_a_trusted_ipv4_proxy_is_known_at_an_ipv6_socket(make_app):
    """A socket that listens on `::` gives IPv4 clients addresses such as `::ffff:10.1.2.3`."""
    app = make_app(trusted_proxies="127.0.0.1,10.0.0.0/8,2001:db8::/32")
    trusted = _TrustedHosts(make_uvicorn_config(app, app.state.settings).forwarded_allow_ips)
    known = ("10.1.2.3", "::ffff:10.1.2.3", "::ffff:127.0.0.1", "2001:db8::1")
    assert [address in trusted for address in (*known, "::ffff:11.1.2.3", "::1")] == [True] * 4 + [False] * 2
