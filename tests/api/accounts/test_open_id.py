"""Logging in at an OpenID Connect provider that runs on this machine."""

import base64
import hmac
import json
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from api.http.rate_limit import RateLimiter
from api.roles import user_roles_of
from api.settings import read_settings
from segdec.errors import ConfigError
from tests.api.accounts.openid_provider import CLIENT, SECRET, Provider, query_of, running

PUBLIC = "http://inspect.test"
HOURS = 3
ROLES = {"qs": "quality", "it": "administrator", "lines": "operator"}

FORGED = (
    b"parts [1]",
    b"parts " + 20_000 * b"[",
    b'parts {"state": "a", "nonce": "n", "code_verifier": {"a": 1}}',
)


@pytest.fixture(scope="module")
def running_provider():
    provider = Provider()
    with running(provider):
        yield provider


@pytest.fixture
def provider(running_provider, monkeypatch):
    monkeypatch.setattr(running_provider, "claims", dict(running_provider.claims))
    monkeypatch.setattr(running_provider, "changes", {})
    return running_provider


@pytest.fixture
def app(make_app, tmp_path, provider):
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    return make_app(
        record="required",
        record_folder=tmp_path / "record",
        public_url=PUBLIC,
        openid_issuer=provider.issuer,
        openid_client=CLIENT,
        openid_secret=secret,
        openid_roles=ROLES,
        openid_hours=HOURS,
    )


@pytest.fixture
def client(app, serve):
    app.state.log_in_attempts = RateLimiter(1, 1000)
    with serve(app) as client:
        yield client


def begin(client, page="parts"):
    """Starts a log-in; returns the answer of the provider to the browser, and the cookie."""
    started = client.get("/v1/session/openid", params={"page": page})
    assert started.status_code == 303, started.text
    cookie = started.headers["set-cookie"].partition(";")[0]
    assert "samesite=lax" in started.headers["set-cookie"].lower()
    returned = httpx.get(started.headers["location"], verify=False).headers["location"]
    assert returned.startswith(f"{PUBLIC}/v1/session/openid/callback?")
    return query_of(returned), cookie


def finish(client, sent, cookie):
    return client.get("/v1/session/openid/callback", params=sent, headers={"Cookie": cookie})


def log_in(client):
    return finish(client, *begin(client))


def session_of(client, answer):
    cookie = next(it for it in answer.headers.get_list("set-cookie") if it.startswith("segdec_session"))
    return client.get("/v1/session", headers={"Cookie": cookie.partition(";")[0]}).json()


def test_a_user_logs_in_and_gets_the_role_of_the_groups(client, provider):
    assert client.get("/v1/records").json()["code"] == "not_logged_in"
    assert client.get("/v1/session").json()["open_id"]
    answer = log_in(client)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PUBLIC}/parts")
    user = {"name": "eva", "role": "quality", "is_screen": False}
    assert session_of(client, answer)["user"] == user | {"roles": list(user_roles_of("quality"))}
    provider.claims |= {"preferred_username": "renamed", "groups": ["it", "qs"]}
    assert session_of(client, log_in(client))["user"]["name"] == "eva"  # the same subject
    provider.claims["groups"] = "lines"
    assert session_of(client, log_in(client))["user"]["role"] == "operator"


def test_without_a_known_group_nobody_logs_in(client, provider):
    for groups in (["others"], [], None, 5, True, {"it": {}}, [["qs"]], [{"qs": 1}]):
        provider.claims["groups"] = groups
        answer = log_in(client)
        assert (answer.status_code, answer.json()["code"]) == (403, "no_role"), groups
        assert "one of: qs, it, lines" in answer.json()["detail"]


def test_who_was_removed_from_the_groups_has_no_role_when_the_session_ends(client, provider, monkeypatch):
    answer = log_in(client)
    cookie = next(it for it in answer.headers.get_list("set-cookie") if it.startswith("segdec_session"))
    headers = {"Cookie": cookie.partition(";")[0]}
    provider.claims["groups"] = []
    ends = datetime.now(UTC) + timedelta(hours=HOURS)
    for hours, status in ((-0.1, 200), (0.1, 401)):
        now = ends + timedelta(hours=hours)
        monkeypatch.setattr("api.accounts.access.datetime", Mock(now=lambda _, now=now: now))
        assert client.get("/v1/records", headers=headers).status_code == status
    assert log_in(client).json()["code"] == "no_role"


def test_the_name_is_the_first_claim_that_is_a_text(client, provider):
    provider.claims |= {"preferred_username": ["a"], "email": {"a": 1}, "name": "Eva Maier"}
    assert session_of(client, log_in(client))["user"]["name"] == "eva maier"


def test_answers_of_the_provider_are_limited(client, app):
    sent, cookie = begin(client)
    app.state.log_in_attempts = RateLimiter(0.001, 1)
    assert [finish(client, sent, cookie).status_code for _ in range(2)] == [303, 429]


def test_another_user_of_the_same_name_is_refused(client, provider):
    assert log_in(client).status_code == 303
    provider.claims["sub"] = "43"
    assert log_in(client).json()["code"] == "user_exists"


def test_other_id_tokens_are_refused(client, provider):
    for changes in (
        {"iss": "https://other.test"},
        {"aud": "other"},
        {"nonce": "other"},
        {"exp": 1_000_000_000},
        *({"sub": subject} for subject in (None, "", 5)),
        *({name: ...} for name in ("iss", "aud", "exp", "nonce", "sub")),
        {"aud": ["other"]},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"iat": 4_000_000_000, "exp": 4_000_000_060},
        {"nbf": 4_000_000_000},
    ):
        provider.changes = changes
        answer = log_in(client)
        assert (answer.status_code, answer.json()["code"]) == (401, "log_in_failed"), changes
        assert "set-cookie" not in answer.headers


def test_a_token_of_another_key_is_refused(client, provider, monkeypatch):
    monkeypatch.setattr(provider, "signing_key", RSAKey.generate_key(2048, {"kid": "1"}))
    assert log_in(client).json()["code"] == "log_in_failed"


def _part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=")


def _sign_symmetric(claims, secret, **header):
    signed = b".".join((_part({"alg": "HS256", "kid": "1", **header}), _part(claims)))
    signature = hmac.digest(secret, signed, "sha256")
    return b".".join((signed, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


def _sign_with_own_key(claims):
    own = RSAKey.generate_key(2048)
    return jwt.encode({"alg": "RS256", "jwk": own.as_dict(private=False)}, claims, own)


@pytest.mark.parametrize(
    "forge",
    [
        lambda claims, _: b".".join((_part({"alg": "none"}), _part(claims), b"")).decode(),
        lambda claims, _: _sign_symmetric(claims, SECRET.encode()),
        lambda claims, key: _sign_symmetric(claims, key.as_pem(private=False)),
        lambda claims, _: _sign_symmetric(claims, b"", alg="RS256"),
        lambda claims, _: _sign_with_own_key(claims),
        lambda *_: "no token",
        lambda *_: None,
        lambda *_: {"a": 1},
    ],
)
def test_a_token_that_the_provider_has_not_signed_is_refused(client, provider, monkeypatch, forge):
    monkeypatch.setattr(provider, "sign", lambda claims: forge(claims, provider.key))
    answer = log_in(client)
    assert (answer.status_code, answer.json()["code"]) == (401, "log_in_failed")
    assert "set-cookie" not in answer.headers


def test_answers_that_were_not_asked_for_are_refused(client):
    sent, cookie = begin(client)
    others = begin(client)[1]
    tries = [
        ({}, cookie),
        ({**sent, "state": "other"}, cookie),
        (sent, others),
        (sent, ""),
        (sent, "segdec_openid=!"),
        *((sent, f"segdec_openid={base64.urlsafe_b64encode(kept).decode()}") for kept in FORGED),
        ({**sent, "code": "other"}, cookie),
        ({"error": "access_denied", "state": sent["state"]}, cookie),
    ]
    codes = [finish(client, *it).json()["code"] for it in tries]
    assert codes == ["log_in_failed"] * len(tries)
    assert finish(client, sent, cookie).status_code == 303
    assert finish(client, sent, cookie).json()["code"] == "log_in_failed"  # the code was used
    assert finish(client, {"code": "x" * 5000}, cookie).status_code == 400


def test_the_browser_returns_to_the_wanted_page_of_this_service_only(client):
    own = ("parts/7", "train?job=3", "label?data_set=1&photograph=2", "parts?station=A%20b")
    others = ("//evil.test", "parts/../x", "parts/7/x", "parts?a=1\r\nSet-Cookie: x", "train#x")
    for page, returned in (*zip(own, own, strict=True), *((page, "") for page in others)):
        assert finish(client, *begin(client, page=page)).headers["location"] == f"{PUBLIC}/{returned}"


def test_a_provider_that_answers_something_else_is_named(make_app, tmp_path, serve, monkeypatch):
    answers = [[], None, "x", {"authorization_endpoint": 5}, {}]
    monkeypatch.setattr(Provider, "_describe", lambda _: answers[0])
    other = Provider()
    with running(other):
        settings = {"openid_issuer": other.issuer, "openid_client": CLIENT, "openid_roles": ROLES}
        app = make_app(record="required", record_folder=tmp_path / "record", public_url=PUBLIC, **settings)
        with serve(app) as client:
            while answers:
                assert client.get("/v1/session/openid").json()["code"] == "provider_unavailable", answers[0]
                answers.pop(0)


def test_a_provider_that_is_down_is_named(make_app, tmp_path, serve):
    settings = {"openid_issuer": "http://127.0.0.1:1", "openid_client": CLIENT, "openid_roles": ROLES}
    app = make_app(record="required", record_folder=tmp_path / "record", public_url=PUBLIC, **settings)
    with serve(app) as client:
        answer = client.get("/v1/session/openid")
        assert (answer.status_code, answer.json()["code"]) == (503, "provider_unavailable")
        assert "http://127.0.0.1:1" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--openid-issuer", "http://login.plant"], "expected an https address"),
        (["--openid-issuer", "https://login.plant"], "--public-url, --openid-client, --openid-roles"),
        (["--openid-roles", "qs=boss"], "openid.roles"),
    ],
)
def test_unusable_settings_are_refused(flags, words):
    with pytest.raises(ConfigError, match=words):
        read_settings(["--model", "m", "--record", "required", *flags])


def test_roles_are_read_from_a_flag():
    flags = ["--public-url", PUBLIC, "--openid-client", "c", "--openid-issuer", "https://login.plant"]
    roles = ["--openid-roles", "cn=qs,ou=x=quality"]
    with pytest.raises(ConfigError, match=r"openid.roles"):
        read_settings(["--model", "m", "--record", "required", *flags, *roles])
    roles[1] = "qs team=quality, it=administrator"
    settings = read_settings(["--model", "m", "--record", "required", *flags, *roles])
    assert settings.openid_roles == {"qs team": "quality", "it": "administrator"}
