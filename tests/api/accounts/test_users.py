"""The users in the database, and the command that changes them."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from zxcvbn import matching

from api.accounts import user_command, users
from api.accounts.passwords import hash_password, is_password
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.tables import audit
from segdec.errors import ConfigError
from tests.api.accounts.conftest import ADMIN, PASSWORD

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "stored"), [(" Anna ", "anna"), ("MÜLLER", "müller"), ("a\u0308", "ä"), ("ａｎｎａ", "anna")]
)
def test_names_are_normalised(name, stored):
    assert users.normalise_name(name) == stored


@pytest.mark.parametrize(
    "name",
    ["", "  ", "a/b", "a\nb", "x" * 65, "\x00", "..", "Service", "the command line", "an\u200bna", "\u3164"],
)
def test_unusable_names_are_refused(name):
    with pytest.raises(RequestError, match="Expected 1 to 64 visible characters") as caught:
        users.normalise_name(name)
    assert caught.value.code == "bad_name"


@pytest.mark.parametrize("password", ["", "123456789", "x" * 201, "annamuellers"])
def test_weak_passwords_are_refused(password):
    with pytest.raises(RequestError, match=f"has {len(password)} characters"):
        hash_password(password, "annamuellers")


@pytest.mark.parametrize(
    "password",
    [
        *("password12", "Password12!", "1234567890", "qwertyuiop", "aaaaaaaaaaaa", "letmein12345"),
        *("anna.mueller1", "4nna.mu3ll3r", "mueller2026", "segdec2026", "Segdecnet1", "x" * 200),
    ],
)
def test_guessable_passwords_are_refused(password):
    with pytest.raises(RequestError, match="easy to guess") as caught:
        hash_password(password, "anna.mueller")
    assert (caught.value.status, caught.value.code) == (422, "guessable_password")


@pytest.mark.parametrize(
    "password", ["correct horse battery", "Regen im Herbst", "k3j9x8w2qp", "Süßöläpfel grün"]
)
def test_other_passwords_are_accepted(password):
    assert is_password(hash_password(password, "anna.mueller"), password)


def test_a_password_with_many_possible_substitutions_is_estimated_at_once(monkeypatch):
    """Each combination of letters is searched for words, so that 1,000 of them take seconds."""
    searched = []
    monkeypatch.setattr(matching, "dictionary_match", lambda text, *_, **__: searched.append(text) or [])
    hash_password("4@({[<691!|7$5+" * 3, "anna.mueller")
    assert 0 < len(searched) < 300


def test_passwords_are_compared():
    hashed = hash_password(PASSWORD, ADMIN)
    assert hashed != hash_password(PASSWORD, ADMIN)
    guesses = [(hashed, PASSWORD), (hashed, "other"), (hashed, "x" * 300), (None, ""), ("damaged", "x")]
    assert [is_password(*guess) for guess in guesses] == [True, False, False, False, False]


@pytest.fixture
def engine_with_two(accounts):
    """The database with a reviewer, too."""
    with write_transaction(accounts) as connection:
        users.add_user(connection, "bob", "reviewer", password="hash", who="test", now=NOW)
    return accounts


def check_refused(engine, code, change, *args):
    with pytest.raises(RequestError) as caught, write_transaction(engine) as connection:
        change(connection, *args)
    assert caught.value.code == code


def test_an_administrator_remains(engine_with_two):
    check_refused(engine_with_two, "no_administrator", users.change_role, "anna", "quality", "test")
    check_refused(engine_with_two, "no_administrator", users.remove_user, "anna", "test")
    with write_transaction(engine_with_two) as connection:
        users.change_role(connection, "bob", "administrator", "test")
        users.remove_user(connection, "anna", "bob")
        assert [user["name"] for user in users.list_users(connection)] == ["bob", "screen"]


def test_users_of_a_provider_need_no_administrator(engine):
    with write_transaction(engine) as connection:
        for number in (1, 2):
            words = {"password": None, "subject": f"provider {number}", "who": "test", "now": NOW}
            users.add_user(connection, f"u{number}", "quality", **words)
        users.add_user(connection, "screen", "operator", password=None, is_screen=True, who="test", now=NOW)
        users.change_role(connection, "u1", "operator", "test")
        users.remove_user(connection, "u1", "test")
        assert [user["name"] for user in users.list_users(connection)] == ["screen", "u2"]


def test_a_change_needs_a_caller_who_is_still_an_administrator(engine_with_two):
    with engine_with_two.connect() as connection:
        for caller in (None, "anna"):
            users.check_still_administrator(connection, caller)
        for caller in ("bob", "nobody"):
            with pytest.raises(RequestError, match="not an administrator any more"):
                users.check_still_administrator(connection, caller)


def test_changes_that_are_not_possible(engine_with_two):
    check_refused(engine_with_two, "user_not_found", users.change_role, "nobody", "quality", "test")
    check_refused(engine_with_two, "user_not_found", users.remove_user, "nobody", "test")
    check_refused(engine_with_two, "screen_has_no_password", users.set_password, "screen", "hash", "test")
    check_refused(engine_with_two, "not_a_screen", users.make_link, "bob", "test", NOW)
    with pytest.raises(RequestError) as caught, write_transaction(engine_with_two) as connection:
        users.add_user(connection, "bob", "operator", password="hash", who="test", now=NOW)
    assert caught.value.code == "user_exists"


def test_every_change_is_in_the_audit_log(engine_with_two):
    with write_transaction(engine_with_two) as connection:
        users.change_role(connection, "bob", "quality", "anna")
        users.change_role(connection, "bob", "quality", "anna")  # no change
        users.set_password(connection, "bob", "other", "bob")
        users.make_link(connection, "screen", "anna", NOW)
        users.remove_user(connection, "bob", "anna")
        found = connection.execute(
            select(audit.c.who, audit.c.what, audit.c.after).order_by(audit.c.id)
        ).all()
    assert [tuple(row[:2]) for row in found[-4:]] == [
        ("anna", "change a user's role"),
        ("bob", "set a user's password"),
        ("anna", "make a log-in link"),
        ("anna", "remove a user"),
    ]
    assert "other" not in str(found) and "hash" not in str(found)


# === Command ===


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs `python -m api user` with a password on a pipe; returns what it prints."""

    def run_one(*words: str, password: str = PASSWORD) -> str:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
        monkeypatch.setattr("sys.stdin.readline", lambda: f"{password}\n", raising=False)
        user_command.run([*words, "--record-folder", str(tmp_path / "record")])
        return capsys.readouterr().out

    return run_one


def test_command_adds_and_changes_users(run):
    assert run("add", "Anna", "--role", "administrator") == "The user 'anna' has the role administrator.\n"
    run("add", "bob", "--role", "reviewer")
    assert "line?kiosk=on#log-in=" in run("add", "screen", "--role", "operator", "--screen")
    assert run("role", "BOB", "--role", "quality") == "The user 'bob' has the role quality.\n"
    assert "has to log in again" in run("password", "bob", password="another password")
    assert "#log-in=" in run("link", "screen")
    assert run("list") == "anna  administrator\nbob  quality\nscreen  operator  screen\n"
    assert run("remove", "bob") == "The user 'bob' is removed.\n"


def test_command_explains_what_is_not_possible(run, tmp_path):
    with pytest.raises(ConfigError, match="There is no record"):
        run("list")
    with pytest.raises(ConfigError, match="Expected at least one"):
        run("add", "bob", "--role", "reviewer")
    assert run("list") == "There are no users.\n"
    with pytest.raises(ConfigError, match="has 5 characters"):
        run("add", "anna", "--role", "administrator", password="short")
    (tmp_path / "record" / "record.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        run("add", "anna", "--role", "administrator")
