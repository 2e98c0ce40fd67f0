"""Tokens of sessions: expiry, rotation, end. On SQLite and PostgreSQL."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from api.accounts import log_in, sessions
from api.accounts.tables import failed_log_ins, users
from api.accounts.users import make_link, set_password
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.tables import audit
from tests.api.accounts.conftest import ADMIN

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def start(connection, user=ADMIN, now=NOW, is_screen=False):
    return sessions.start_session(connection, user, is_screen=is_screen, now=now).text


def renew(connection, token, now):
    return sessions.renew_session(connection, token, now, provider_time=5 * HOUR)


def test_session_of_a_token(accounts):
    with write_transaction(accounts) as connection:
        token = start(connection)
        found = sessions.find_session(connection, token, NOW + 11 * HOUR)
        assert (found.user, found.role, found.is_screen) == (ADMIN, "administrator", False)
        assert sessions.find_session(connection, token, NOW + 12 * HOUR) is None
        assert sessions.find_session(connection, token + "x", NOW) is None
        assert sessions.find_session(connection, "", NOW) is None


def test_expired_sessions_are_removed(accounts):
    with write_transaction(accounts) as connection:
        start(connection)
        start(connection, now=NOW + 13 * HOUR)
        assert len(connection.execute(select(sessions.sessions)).all()) == 1


def test_an_old_token_is_replaced_once(accounts):
    with write_transaction(accounts) as connection:
        old = start(connection)
        csrf_token = sessions.find_session(connection, old, NOW).csrf_token
        assert renew(connection, old, NOW + HOUR / 2) is None
        later = NOW + 2 * HOUR
        new = renew(connection, old, later)
        assert renew(connection, old, later) is None  # another tab
        assert new.expires_at == later + 12 * HOUR
        assert sessions.find_session(connection, new.text, later).csrf_token == csrf_token
        assert sessions.find_session(connection, old, later + timedelta(seconds=59)) is not None
        assert sessions.find_session(connection, old, later + timedelta(seconds=60)) is None
        assert renew(connection, "unknown", later) is None


def test_a_session_ends_after_a_week_a_screens_does_not(accounts):
    with write_transaction(accounts) as connection:
        ends = {}
        for user, is_screen in ((ADMIN, False), ("screen", True)):
            token = start(connection, user, is_screen=is_screen)
            for hour in range(2, 24 * 8, 2):
                new = renew(connection, token, NOW + hour * HOUR)
                if new is None:
                    break
                token, ends[user] = new.text, new.expires_at
        assert ends[ADMIN] == NOW + timedelta(days=7)
        assert ends["screen"] == NOW + 190 * HOUR + timedelta(days=400)


def test_a_session_of_a_providers_user_ends_hours_after_the_log_in_whatever_is_open(accounts):
    with write_transaction(accounts) as connection:
        connection.execute(update(users).where(users.c.name == ADMIN).values(subject="https://login.test 1"))
        token = sessions.start_session(connection, ADMIN, is_screen=False, now=NOW, max_time=5 * HOUR)
        assert token.expires_at == NOW + 5 * HOUR
        for hour in (2, 4):
            token = renew(connection, token.text, NOW + hour * HOUR)
            assert token.expires_at == NOW + 5 * HOUR
        assert sessions.find_session(connection, token.text, NOW + 5 * HOUR) is None
        assert renew(connection, token.text, NOW + 5 * HOUR) is None


def test_log_out_ends_the_old_token_too(accounts):
    with write_transaction(accounts) as connection:
        old, other = start(connection), start(connection)
        new = renew(connection, old, NOW + 2 * HOUR).text
        sessions.end_session(connection, new)
        found = [sessions.find_session(connection, it, NOW + 2 * HOUR) for it in (old, new, other)]
        assert [it is not None for it in found] == [False, False, True]


def attempt(connection, name, now):
    """Begins an attempt; returns the seconds for which the name is locked, 0 if it is not."""
    try:
        log_in.begin_attempt(connection, name, now)
    except RequestError as error:
        assert (error.status, error.code) == (429, "log_in_locked")
        return int(error.headers["Retry-After"])
    return 0


def test_failures_lock_a_name_longer_and_longer(accounts):
    with write_transaction(accounts) as connection:
        now, times = NOW, []
        for _ in range(12):
            locked_s = attempt(connection, ADMIN, now)
            if locked_s:
                times.append(locked_s)
                assert attempt(connection, ADMIN, now) == locked_s  # while it is locked, nothing counts
                now += timedelta(seconds=locked_s)
                assert attempt(connection, ADMIN, now) == 0
        assert times == [30, 60, 120, 240, 480, 900, 900]
        locked = select(audit.c.who, audit.c.after).where(audit.c.what == "lock the log-in")
        entries = [tuple(row) for row in connection.execute(locked)]
        assert entries == [("service", '{"name": "anna", "failures": 5}')]
        stored = log_in.begin_attempt(connection, ADMIN, now + HOUR)
        log_in.log_in(connection, ADMIN, stored, now)
        assert [attempt(connection, ADMIN, now) for _ in range(5)] == [0] * 5


def test_a_clock_that_is_set_back_locks_nobody_out_for_long(accounts):
    with write_transaction(accounts) as connection:
        for _ in range(5):
            attempt(connection, ADMIN, NOW + 24 * HOUR)
        assert attempt(connection, ADMIN, NOW + 23.9 * HOUR) <= 2 * log_in.MAX_LOCK_S
        assert attempt(connection, ADMIN, NOW) == 0


def test_sessions_and_links_from_before_the_clock_was_set_back_do_not_last_for_years(accounts):
    with write_transaction(accounts) as connection:
        for wrong, valid in ((NOW + 24 * HOUR, True), (NOW + 9000 * HOUR, False)):
            token = start(connection, now=wrong)
            assert (sessions.find_session(connection, token, NOW) is not None) == valid
            link, _ = make_link(connection, "screen", ADMIN, wrong)
            with nullcontext() if valid else pytest.raises(RequestError, match="Ask an administrator"):
                log_in.log_in_by_link(connection, link, NOW)
        screen = start(connection, "screen", NOW + 9000 * HOUR, is_screen=True)
        assert sessions.find_session(connection, screen, NOW) is not None  # nobody can log it in again


def test_failures_of_unknown_names_are_forgotten(accounts, monkeypatch):
    def names():
        return (
            connection.execute(select(failed_log_ins.c.name).order_by(failed_log_ins.c.name)).scalars().all()
        )

    with write_transaction(accounts) as connection:
        for name in ("nobody", "somebody"):
            attempt(connection, name, NOW)
        attempt(connection, "other", NOW + 25 * HOUR)
        assert names() == ["other"]
        monkeypatch.setattr(log_in, "MAX_NAMES", 10)
        for number in range(20):
            attempt(connection, f"user{number:02}", NOW + 25 * HOUR + timedelta(seconds=number + 1))
        assert names() == [f"user{number:02}" for number in range(10, 20)]
        for _ in range(5):
            attempt(connection, "nobody", NOW + 26 * HOUR)
        entries = connection.execute(select(audit.c.id).where(audit.c.what == "lock the log-in")).all()
        assert entries == []  # nobody has this name


def test_a_password_that_has_changed_meanwhile_starts_no_session(accounts):
    with write_transaction(accounts) as connection:
        stored = log_in.begin_attempt(connection, ADMIN, NOW)
        set_password(connection, ADMIN, "another hash", ADMIN)
        with pytest.raises(RequestError, match="name or the password is wrong"):
            log_in.log_in(connection, ADMIN, stored, NOW)


def test_a_link_logs_a_screen_in_once(accounts):
    with write_transaction(accounts) as connection:
        replaced, _ = make_link(connection, "screen", ADMIN, NOW)
        token, expires_at = make_link(connection, "screen", ADMIN, NOW)
        session = sessions.find_session(connection, log_in.log_in_by_link(connection, token, NOW).text, NOW)
        assert (session.user, session.is_screen) == ("screen", True)
        late, _ = make_link(connection, "screen", ADMIN, NOW)
        for bad in (token, replaced, "", late):
            with pytest.raises(RequestError, match="Ask an administrator"):
                log_in.log_in_by_link(connection, bad, expires_at)
