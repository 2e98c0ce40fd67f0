"""The clock of the service jumps while photographs are inspected and labelled and a worker trains."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain

import httpx
import pytest

from api.accounts.passwords import hash_password
from api.accounts.users import add_user
from api.database.database import migrate, open_database, write_transaction
from tests.api.data_sets.test_killed import FLAGS, Jobs, Sender, Trainer, create
from tests.api.data_sets.test_killed import check as check_data_set
from tests.api.delivery.test_delivery import check_events, receiver
from tests.api.record.jumping_clock import JumpingService, needs_library
from tests.api.record.recording_clients import TIMEOUT_S, Clients, check

__all__ = ["receiver"]  # a fixture
pytestmark = [pytest.mark.slow, needs_library]
HOUR_S, DAY_S = 3600, 86_400
NAME, PASSWORD = "anna", "correct horse battery"


def list_records(url, **query):
    """Returns the ids on all pages."""
    found, before = [], {}
    while True:
        page = httpx.get(f"{url}/v1/records", params={"limit": 50, **query, **before}, timeout=TIMEOUT_S)
        found += [record["record_id"] for record in page.raise_for_status().json()["records"]]
        if (number := page.json()["next_before"]) is None:
            return found
        before = {"before": number}


def test_nothing_is_lost_when_the_clock_jumps(tmp_path, receiver):
    folder, keys = tmp_path / "record", tmp_path / "train.keys"
    database = f"sqlite:///{folder / 'record.db'}"
    keys.write_text(f"gpu:{hashlib.sha256(b'of-a-worker').hexdigest()}")
    flags = ("--record-good-days", "0.5", "--record-defect-days", "0.5", "--train-keys", str(keys))
    clock = tmp_path / "clock"
    service = JumpingService(clock, folder, database, *FLAGS, *flags, "--outbox-webhook", receiver.url)
    create(service)
    with ThreadPoolExecutor(3) as threads:
        jobs = Jobs(service.url, threads)
        clients, sender = Clients(), Sender(service.url)
        trainer = Trainer(service.url, sender.ended)
        clients.start(service)
        running = jobs.start()
        for seconds in (DAY_S, 0, -HOUR_S, 0):
            clients.wait_for_answers(10)
            sender.wait_for(sender.answered, 3)
            enough = len(trainer.stored) + 3
            while len(trainer.stored) < enough and trainer.thread.is_alive():
                sender.ended.wait(0.01)
            service.jump(seconds)
            assert httpx.get(f"{service.url}/readyz", timeout=TIMEOUT_S).status_code == 200
        clients.wait_for_answers(10)
        clients.end()
        sender.end()
        trainer.check()
        assert {job.result()["state"] for job in running} == {"done"}
        assert [job.result()["state"] for job in jobs.start()] == ["done"] * 3
    metrics = httpx.get(f"{service.url}/metrics", timeout=TIMEOUT_S).text
    assert "segdec_record_clock_distrusted 1.0" in metrics
    listed = list_records(service.url)
    assert listed == list(range(len(listed), 0, -1))
    now = datetime.now(UTC)
    early, late = ((now + timedelta(hours=hours)).isoformat() for hours in (-0.5, 12))
    periods = {"until": early}, {"since": early, "until": late}, {"since": late}
    found = [list_records(service.url, **period) for period in periods]
    assert all(found) and sorted(chain(*found)) == listed[::-1]
    check_events(database, receiver)
    check_data_set(service, folder, database, sender)
    assert check(folder, database, clients) == len(listed)


def test_a_session_outlives_a_clock_that_is_wrong_for_a_while(tmp_path):
    folder = tmp_path / "record"
    folder.mkdir()
    database = f"sqlite:///{folder / 'record.db'}"
    engine = open_database(database)
    migrate(engine)
    with write_transaction(engine) as connection:
        now, hashed = datetime.now(UTC), hash_password(PASSWORD, NAME)
        add_user(connection, NAME, "administrator", password=hashed, who="test", now=now)
    engine.dispose()
    service = JumpingService(tmp_path / "clock", folder, database)

    def log_in():
        body = {"name": NAME, "password": PASSWORD}
        sent = httpx.post(f"{service.url}/v1/session", json=body, timeout=TIMEOUT_S).raise_for_status()
        return {"Cookie": sent.headers["Set-Cookie"].partition(";")[0]}

    def user_of(cookie):
        answer = httpx.get(f"{service.url}/v1/session", headers=cookie, timeout=TIMEOUT_S).raise_for_status()
        return answer.json()["user"] and answer.json()["user"]["name"]

    before = log_in()
    service.jump(DAY_S)
    assert user_of(before) is None
    service.jump(0)
    assert user_of(before) == NAME
    service.jump(DAY_S)
    meanwhile = log_in()
    service.jump(0)
    assert user_of(meanwhile) == NAME
    service.jump(-HOUR_S)
    assert user_of(meanwhile) == NAME
    service.jump(9 * DAY_S)
    assert user_of(meanwhile) is None
    service.stop()
