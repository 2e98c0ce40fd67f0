"""Logging in and out over HTTP; cookies, CSRF tokens, lock-out; requests without users."""

import asyncio

import httpx
import pytest

from api.accounts import access, session_routes
from api.errors import RequestError
from api.http.rate_limit import RateLimiter
from api.roles import USER_ROLES
from tests.api.accounts.conftest import ADMIN, PASSWORD
from tests.api.conftest import PNG
from tests.api.live_server import served

OTHER = "another good password"
RECORDS = "/v1/records"


class Browser:
    """Sends requests with the cookie and the CSRF token of a user."""

    def __init__(self, client, name=None, password=PASSWORD):
        self.client, self.cookie, self.csrf_token = client, "", None
        if name is not None:
            answer = self.send("POST", "/v1/session", {"name": name, "password": password})
            assert answer.status_code == 200, answer.text

    def send(self, method, path, body=None, **headers):
        if self.cookie:
            headers = {"Cookie": self.cookie, "X-CSRF-Token": self.csrf_token or "", **headers}
        answer = self.client.request(method, path, json=body, headers=headers)
        self.client.run(self._forget_cookies)
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        if path.startswith("/v1/session") and answer.status_code == 200:
            self.csrf_token = answer.json()["csrf_token"]
        return answer

    async def _forget_cookies(self):
        self.client._client.cookies.clear()

    def code(self, method, path, body=None, **headers):
        answer = self.send(method, path, body, **headers)
        return answer.status_code, answer.json().get("code")


@pytest.fixture
def browser(app, serve):
    """Nobody is logged in; there is the administrator `anna`."""
    with serve(app) as client:
        record = app.state.service.recording.record
        client.run(lambda: add_users(record, anna="administrator"))
        app.state.access.forget_users()
        yield Browser(client)


async def add_users(record, **roles):
    from datetime import UTC, datetime
    from functools import partial

    from api.accounts import users
    from api.accounts.passwords import hash_password

    for name, role in roles.items():
        hashed = hash_password(PASSWORD, name)
        add = partial(
            users.add_user, name=name, role=role, password=hashed, who="test", now=datetime.now(UTC)
        )
        await record.write(add)


def test_log_in_and_out(browser):
    nobody = {"user": None, "csrf_token": None, "has_users": True, "local_roles": [], "open_id": False}
    assert browser.send("GET", "/v1/session").json() == nobody
    assert browser.code("GET", RECORDS) == (401, "not_logged_in")
    answer = browser.send("POST", "/v1/session", {"name": " ANNA", "password": PASSWORD})
    user = {"name": ADMIN, "role": "administrator", "is_screen": False, "roles": list(USER_ROLES)}
    assert answer.json()["user"] == user
    attributes = answer.headers["set-cookie"].lower()
    assert all(word in attributes for word in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in attributes  # http
    assert browser.code("GET", RECORDS) == (200, None)
    cookie = browser.cookie
    assert browser.send("DELETE", "/v1/session").json()["user"] is None
    browser.cookie = cookie
    assert browser.code("GET", RECORDS) == (401, "not_logged_in")
    assert browser.code("DELETE", "/v1/session") == (401, "not_logged_in")


def test_cookie_is_for_the_public_address_and_secure_over_https(browser, app):
    body = {"name": ADMIN, "password": PASSWORD}
    answer = browser.client.request("POST", "https://test/v1/session", json=body)
    assert "secure" in answer.headers["set-cookie"].lower()
    app.state.settings = app.state.settings.model_copy(update={"public_url": "https://plant.test/inspect"})
    attributes = browser.send("POST", "/v1/session", body).headers["set-cookie"].lower()
    assert "path=/inspect" in attributes and "secure" in attributes


def test_the_clock_of_the_browser_does_not_end_the_session(browser):
    attributes = browser.send("POST", "/v1/session", {"name": ADMIN, "password": PASSWORD}).headers[
        "set-cookie"
    ]
    assert "Max-Age=43200;" in attributes and "expires" not in attributes.lower()


@pytest.mark.parametrize(
    "body",
    [
        {"name": ADMIN, "password": "wrong"},
        {"name": "nobody", "password": PASSWORD},
        {"name": "a", "password": ""},
    ],
)
def test_wrong_names_and_passwords_get_the_same_answer(browser, body):
    answer = browser.send("POST", "/v1/session", body)
    assert (answer.status_code, answer.json()["code"]) == (401, "log_in_failed")
    assert answer.json()["detail"] == "The name or the password is wrong."
    assert "set-cookie" not in answer.headers


def test_attempts_are_limited(browser, app):
    wrong = {"name": ADMIN, "password": "wrong"}
    codes = [browser.code("POST", "/v1/session", wrong)[1] for _ in range(6)]
    assert codes == ["log_in_failed"] * 5 + ["log_in_locked"]
    assert browser.code("POST", "/v1/session", {"name": ADMIN, "password": PASSWORD})[1] == "log_in_locked"
    app.state.log_in_attempts = RateLimiter(0.001, 2)
    codes = [browser.code("POST", "/v1/session", {**wrong, "name": f"user{n}"})[1] for n in range(3)]
    assert codes == ["log_in_failed", "log_in_failed", "rate_limit"]


def test_attempts_at_the_same_time_are_limited_too(browser, app):
    app.state.log_in_attempts = RateLimiter(1, 1000)

    async def try_all():
        body = {"name": ADMIN, "password": "wrong"}
        tries = (browser.client._client.post("/v1/session", json=body) for _ in range(12))
        return [answer.json()["code"] for answer in await asyncio.gather(*tries)]

    codes = browser.client.run(try_all)
    assert sorted(codes) == ["log_in_failed"] * 5 + ["log_in_locked"] * 7
    app.state.log_in_queue.limit = 0
    answer = browser.send("POST", "/v1/session", {"name": "bob", "password": "x"})
    assert (answer.status_code, answer.json()["code"]) == (503, "log_ins_full")


def test_changes_need_the_csrf_token(browser):
    anna = Browser(browser.client, ADMIN)
    token, anna.csrf_token = anna.csrf_token, "wrong"
    new = {"name": "bob", "role": "reviewer", "password": PASSWORD}
    assert anna.code("POST", "/v1/users", new) == (403, "csrf")
    assert anna.code("DELETE", "/v1/session") == (403, "csrf")
    assert anna.code("GET", "/v1/users") == (200, None)
    anna.csrf_token = token
    assert anna.code("POST", "/v1/users", new) == (200, None)


def test_requests_of_other_sites_are_refused(browser):
    anna = Browser(browser.client, ADMIN)
    assert anna.code("DELETE", "/v1/users/anna", **{"Sec-Fetch-Site": "cross-site"}) == (403, "cross_site")
    body = {"name": ADMIN, "password": PASSWORD}
    assert browser.code("POST", "/v1/session", body, Origin="http://evil.test") == (403, "cross_site")


def test_users_are_managed(browser):
    anna = Browser(browser.client, ADMIN)
    anna.send("POST", "/v1/users", {"name": "Bob", "role": "operator", "password": PASSWORD})
    bob = Browser(browser.client, "bob")
    assert bob.code("GET", "/v1/trends?first=2026-01-01&last=2026-01-02") == (403, "role_too_low")
    names = anna.send("PUT", "/v1/users/bob", {"role": "quality"}).json()
    people = [(user["name"], user["role"]) for user in names["users"]]
    assert (people, names["roles"]) == ([("anna", "administrator"), ("bob", "quality")], list(USER_ROLES))
    assert bob.code("GET", "/v1/trends?first=2026-01-01&last=2026-01-02") == (200, None)
    assert anna.code("PUT", "/v1/users/bob", {"password": "short"}) == (422, "weak_password")
    assert anna.code("PUT", "/v1/users/bob", {"password": OTHER}) == (200, None)
    assert bob.code("GET", RECORDS) == (401, "not_logged_in")
    bob = Browser(browser.client, "bob", OTHER)
    assert anna.code("DELETE", "/v1/users/bob") == (200, None)
    assert bob.code("GET", RECORDS) == (401, "not_logged_in")
    assert anna.code("DELETE", "/v1/users/bob") == (404, "user_not_found")
    for change in ({}, {"role": "quality"}, {"password": OTHER}):
        assert anna.code("PUT", "/v1/users/bob", change) == (404, "user_not_found")
    assert anna.code("DELETE", "/v1/users/anna") == (200, None)  # the last one: nobody has to log in
    assert browser.code("GET", RECORDS) == (200, None)


def test_users_are_listed_in_pages(browser):
    anna = Browser(browser.client, ADMIN)
    for name in ("carl", "bob"):
        anna.send("POST", "/v1/users", {"name": name, "role": "operator", "password": None})
    page = anna.send("GET", "/v1/users?limit=2").json()
    assert ([user["name"] for user in page["users"]], page["next_after"]) == (["anna", "bob"], "bob")
    page = anna.send("GET", "/v1/users?limit=2&after=bob").json()
    assert ([user["name"] for user in page["users"]], page["next_after"]) == (["carl"], None)
    assert anna.code("GET", "/v1/users?limit=501") == (400, "bad_parameter")


def test_a_change_of_a_user_is_made_completely_or_not_at_all(browser):
    anna = Browser(browser.client, ADMIN)
    anna.send("POST", "/v1/users", {"name": "screen", "role": "operator", "password": None})
    change = {"role": "administrator", "password": PASSWORD}
    assert anna.code("PUT", "/v1/users/screen", change) == (409, "screen_has_no_password")
    assert [user["role"] for user in anna.send("GET", "/v1/users").json()["users"]][1] == "operator"


def test_a_session_survives_an_outage_of_the_database(browser, app, monkeypatch):
    anna = Browser(browser.client, ADMIN)
    monkeypatch.setattr(session_routes, "needs_renewal", lambda *_: True)

    async def fail(*_):
        raise RequestError(503, "record_unavailable", "full")

    monkeypatch.setattr(app.state.service.recording.record, "write", fail)
    assert anna.send("GET", "/v1/session").json()["user"]["name"] == ADMIN


def test_own_password_is_changed(browser):
    anna, elsewhere = Browser(browser.client, ADMIN), Browser(browser.client, ADMIN)
    wrong = {"password": "wrong", "new_password": OTHER}
    assert anna.code("PUT", "/v1/session/password", wrong) == (401, "log_in_failed")
    assert anna.code("PUT", "/v1/session/password", {"password": PASSWORD, "new_password": "a"})[0] == 422
    assert anna.code("PUT", "/v1/session/password", {"password": PASSWORD, "new_password": OTHER})[0] == 200
    assert anna.code("GET", "/v1/users") == (200, None)
    assert elsewhere.code("GET", "/v1/users") == (401, "not_logged_in")
    Browser(browser.client, ADMIN, OTHER)


def test_a_screen_logs_in_with_a_link(browser):
    anna = Browser(browser.client, ADMIN)
    anna.send("POST", "/v1/users", {"name": "screen", "role": "operator", "password": None})
    link = anna.send("POST", "/v1/users/screen/link").json()["path"]
    token = {"token": link.partition("log-in=")[2]}
    screen = Browser(browser.client)
    assert screen.send("POST", "/v1/session/link", token).json()["user"]["is_screen"]
    assert screen.code("GET", "/v1/line") == (200, None)
    assert browser.code("POST", "/v1/session/link", token) == (401, "link_not_valid")
    assert browser.code("POST", "/v1/session", {"name": "screen", "password": ""}) == (401, "log_in_failed")
    assert anna.code("POST", "/v1/users/anna/link") == (409, "not_a_screen")


def test_the_name_of_the_user_is_recorded(browser, part):
    anna = Browser(browser.client, ADMIN)
    headers = {**PNG, "Cookie": anna.cookie, "X-CSRF-Token": anna.csrf_token}
    sent = browser.client.post("/v1/inspect", content=part, headers=headers).json()
    path = f"/v1/records/{sent['record_id']}"
    assert anna.send("GET", path).json()["client"] == ADMIN
    review = {"label": "good", "reviewer": "somebody else"}
    answer = anna.send("PUT", f"{path}/review", review, **{"If-Match": '"0"'})
    assert answer.json()["review"]["reviewer"] == ADMIN
    changes = anna.send("GET", "/v1/audit").json()["changes"]
    assert [(it["who"], it["what"]) for it in changes][:2] == [(ADMIN, "review"), (ADMIN, "log in")]


@pytest.mark.parametrize(
    "cookie", ["", "segdec_session=", "segdec_session=\xff", "segdec_session=" + "x" * 5000]
)
def test_other_cookies_identify_no_user(browser, cookie):
    browser.cookie = cookie
    headers = {"Cookie": cookie.encode("latin-1")} if cookie else {}
    answer = browser.client.get("/v1/session", headers=headers)
    assert (answer.status_code, answer.json()["user"]) == (200, None)
    assert browser.client.get(RECORDS, headers=headers).status_code == 401


def test_photographs_are_inspected_without_a_log_in_unless_keys_are_set(browser, part):
    assert browser.client.post("/v1/inspect", content=part, headers=PNG).status_code == 200
    unknown = {"X-API-Key": "unknown"}
    assert browser.client.get(RECORDS, headers=unknown).json()["code"] == "review_off"


def test_keys_work_beside_users(make_app, tmp_path, key_files, serve):
    app = make_app(record="required", record_folder=tmp_path / "record", **key_files)
    with serve(app) as client:
        client.run(lambda: add_users(app.state.service.recording.record, anna="administrator"))
        nobody, anna = Browser(client), Browser(client, ADMIN)
        assert nobody.code("GET", RECORDS, **{"X-API-Key": "review"}) == (200, None)
        assert nobody.code("GET", "/v1/models") == (401, "not_logged_in")
        assert anna.code("GET", "/v1/models") == (200, None)
        assert anna.code("GET", "/v1/users", **{"X-API-Key": "review"}) == (
            403,
            "not_admin",
        )  # the key counts
        assert nobody.code("GET", "/v1/users", **{"X-API-Key": "admin"}) == (200, None)


@pytest.mark.parametrize(
    ("settings", "status", "code"),
    [
        ({"host": "127.0.0.1"}, 200, None),
        ({"host": "::1"}, 200, None),
        ({"host": "0.0.0.0"}, 403, "review_off"),
        ({"public_url": "https://inspect.plant"}, 403, "review_off"),
        ({"allowed_hosts": "inspect.plant"}, 403, "review_off"),
    ],
)
def test_without_users_the_record_is_open_on_the_loopback_address_only(
    settings, status, code, make_app, tmp_path, serve, part
):
    with serve(make_app(record="required", record_folder=tmp_path / "record", **settings)) as client:
        browser = Browser(client)
        assert browser.code("GET", RECORDS) == (status, code)
        assert client.post("/v1/inspect", content=part, headers=PNG).status_code == 200
        answer = browser.send("POST", "/v1/admin/models/unnamed/reload")
        assert answer.json()["code"] == "admin_off"
        assert "python -m api user add" in answer.json()["detail"]


def test_without_users_the_role_of_everybody_on_the_machine_is_a_setting(make_app, tmp_path, serve):
    words = {"record": "required", "record_folder": tmp_path / "record", "local_role": "engineer"}
    with serve(make_app(**words)) as client:
        browser = Browser(client)
        assert browser.code("GET", RECORDS) == (200, None)
        assert browser.code("POST", "/v1/admin/models/unnamed/reload") == (404, "model_not_found")
        assert browser.code("GET", "/v1/users") == (403, "admin_off")
    with serve(make_app(**words, host="0.0.0.0")) as client:
        assert Browser(client).code("POST", "/v1/admin/models/unnamed/reload") == (403, "admin_off")


def test_without_users_a_client_behind_a_proxy_is_not_local(app, serve):
    with serve(app) as client:
        transport = httpx.ASGITransport(app, client=("203.0.113.5", 1))

        async def ask():
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as other:
                return await other.get(RECORDS)

        assert client.run(ask).json()["code"] == "review_off"


@pytest.mark.parametrize("header", [{"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}])
def test_without_users_a_client_behind_a_proxy_that_is_not_trusted_is_not_local(app, serve, header):
    with serve(app) as client:
        assert Browser(client).code("GET", RECORDS, **header) == (403, "review_off")


def test_a_header_does_not_avoid_the_limit_of_log_ins(app):
    app.state.log_in_attempts = RateLimiter(0.001, 1)
    with served(app) as (host, port), httpx.Client(base_url=f"http://{host}:{port}") as client:
        attempts = [
            client.post(
                "/v1/session",
                json={"name": ADMIN, "password": PASSWORD},
                headers={"X-Forwarded-For": f"203.0.113.{number}"},
            )
            for number in range(2)
        ]
    assert [attempt.json()["code"] for attempt in attempts] == ["log_in_failed", "rate_limit"]


def test_a_user_added_by_the_command_line_counts_after_some_seconds(app, serve, monkeypatch):
    monkeypatch.setattr(access, "USERS_CHECK_S", 1000)
    app.state.access.forget_users()
    with serve(app) as client:
        browser = Browser(client)
        assert browser.code("GET", RECORDS) == (200, None)
        client.run(lambda: add_users(app.state.service.recording.record, anna="administrator"))
        assert browser.code("GET", RECORDS) == (200, None)
        monkeypatch.setattr(access, "USERS_CHECK_S", 0)
        assert browser.code("GET", RECORDS) == (401, "not_logged_in")
