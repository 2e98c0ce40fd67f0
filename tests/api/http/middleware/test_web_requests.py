"""What pages of other web sites can make a browser do: DNS rebinding, and requests from another origin."""

import socket

import pytest

from api.app import create_app
from api.settings import Settings
from tests.api.conftest import PNG, ServiceClient, StubPredictor, problem

KNOWN = """
127.0.0.1:8000 LOCALHOST:8000 localhost. 10.0.7.21 [::1]:8000 [fe80::1] segdec:80
press-7.plant:8000 line3.plant inspection.plant:443 segdec.svc.cluster.plant
press-7.local:8000 host.docker.internal inspection.home.arpa. segdec.svc.cluster.local:80
"""
UNKNOWN = """
evil.example evil.example:8000 127.0.0.1.evil.example 127.1 localhost.evil.example
cluster.plant evilcluster.plant local.evil.example evillocal.example [::1 [::1]x
[evil.example] evil@127.0.0.1 127.0.0.1:1:1
"""


@pytest.fixture(scope="module")
def known():
    settings = {"model": "x", "host": "line3.plant", "allowed_hosts": "inspection.plant, *.cluster.plant"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "Press-7.plant")
        with ServiceClient(create_app(Settings.model_validate(settings), StubPredictor())) as client:
            yield client


def test_addresses_and_names_of_the_service_are_accepted(known):
    hosts = ["", *KNOWN.split()]
    answers = {host: known.get("/v1/models", headers={"Host": host}).status_code for host in hosts}
    assert answers == dict.fromkeys(hosts, 200)


@pytest.mark.parametrize("path", ["/v1/predict", "/v2/models/unnamed/infer", "/", "/readyz"])
def test_other_names_are_refused(known, path):
    for host in UNKNOWN.split():
        answer = known.post(path, headers={"Host": host})
        assert problem(answer) == (400, "unknown_host")
        assert repr(host) in answer.json()["detail"] and "--allowed-hosts" in answer.json()["detail"]
        assert ("error" in answer.json()) == path.startswith("/v2")


def test_every_host_header_is_checked(known):
    both = [("Host", "localhost"), ("Host", "evil.example")]
    assert problem(known.get("/livez", headers=both)) == (400, "unknown_host")


def test_a_proxy_may_check_the_names_instead(serve, make_app):
    with serve(make_app(allowed_hosts="*")) as client:
        assert client.get("/livez", headers={"Host": "any.example"}).status_code == 200


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},  # another port of this machine
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://test"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},
]


def test_pages_of_other_origins_inspect_and_change_nothing(unchanged, part):
    requests = [
        *(("POST", f"/v1/{name}") for name in ("inspect", "predict", "predict/batch", "review/next", "none")),
        *((method, "/v1/records/1/review") for method in ("PUT", "DELETE")),
        ("POST", "/v2/models/a/infer"),
        ("POST", "/v1/admin/models/unnamed/reload"),
    ]
    for headers in FOREIGN:
        for method, path in requests:
            answer = unchanged.request(method, path, content=part, headers={**PNG, **headers})
            assert problem(answer) == (403, "cross_site"), (headers, path)
        assert unchanged.get("/v1/records", headers=headers).json()["records"] == []
    line = unchanged.get("/v1/line").json()
    assert (line["uninspected"], line["shift"]["not_inspected"]) == ([], 0)
    assert 'segdec_rejections_total{reason="cross_site"} 54.0' in unchanged.get("/metrics").text


def test_own_pages_programs_and_allowed_origins_are_answered(serve, make_app, part):
    with serve(make_app(cors_origins=("https://hmi.plant",))) as client:
        for headers in (
            *({}, {"Sec-Fetch-Site": "same-origin", "Origin": "http://test"}, {"Sec-Fetch-Site": "none"}),
            *({"Origin": "http://test"}, {"Origin": "https://TEST"}),
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://hmi.plant"},
        ):
            answer = client.post("/v1/predict", content=part, headers={**PNG, **headers})
            assert answer.status_code == 200, headers
