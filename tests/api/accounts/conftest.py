from datetime import UTC, datetime

import pytest

from api.accounts import passwords
from api.accounts.users import add_user
from api.database.database import write_transaction

ADMIN, PASSWORD = "anna", "correct horse battery"


class CheapHasher(passwords.PasswordHasher):
    """The real hash with less memory and time."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch):
    monkeypatch.setattr(passwords, "_hasher", CheapHasher())
    passwords._hash_of_nobody.cache_clear()


@pytest.fixture
def accounts(engine):
    """A database with an administrator and a screen."""
    now = datetime.now(UTC)
    hashed = passwords.hash_password(PASSWORD, ADMIN)
    with write_transaction(engine) as connection:
        add_user(connection, ADMIN, "administrator", password=hashed, who="test", now=now)
        add_user(connection, "screen", "operator", password=None, is_screen=True, who="test", now=now)
    return engine


@pytest.fixture
def app(make_app, tmp_path):
    return make_app(record="required", record_folder=tmp_path / "record")
