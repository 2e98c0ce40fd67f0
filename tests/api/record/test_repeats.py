"""Rows with the same key, in both databases."""

from sqlalchemy import func, select

from api.database.database import write_transaction
from api.record.outbox import Outbox
from api.record.queries import upsert_pictures
from api.record.repeats import part_key, request_key
from api.record.tables import hours, outbox
from api.record.writer import add_rows
from tests.api.record.filled_record import NOW, make_row

PICTURES = [number.to_bytes(32, "big") for number in (1, 2)]
KEY = request_key("", "shot-1")


def make_part(number, **changes):
    row = make_row(number, part_id="7", picture=PICTURES[0], **changes)
    return {**row, "part_key": part_key(row)}


def test_rows_of_one_transaction_with_one_key(engine):
    """Also if it is repeated, because the answer to its commit was lost."""
    rows = [
        make_part(1, request_key=KEY),
        make_part(2, request_key=KEY),  # repeats 1
        make_part(3, request_key=KEY, version="2", label="good"),  # after a promotion
        make_part(4, request_key=KEY, version="2", label="good"),  # repeats 3
        make_part(5, request_key=KEY, version="2", label="scratch"),
        {**make_part(6, request_key=KEY), "picture": PICTURES[1]},  # reuses the key
        make_part(7, version="3"),
        make_part(8, request_key=KEY, version="3"),  # repeats 7, which has no key
    ]
    picture = {"bytes": 1, "format": "png", "state": "kept", "worth": 1, "stored_at": NOW}
    for _ in range(2):
        with write_transaction(engine) as connection:
            upsert_pictures(connection, [{"sha256": sha256, **picture} for sha256 in PICTURES])
            stored = add_rows(connection, rows, Outbox(("fake",)))
            added = connection.execute(select(func.sum(hours.c.count))).scalar_one()
            events = connection.execute(select(func.count()).select_from(outbox)).scalar_one()
        originals = [one.original and int.from_bytes(one.original["token"], "big") for one in stored]
        assert originals == [None, 1, None, 3, None, 1, None, 7]
        assert [one.differences for one in stored] == [(), (), (), (), (), ("picture",), (), ()]
        assert (added, events) == (4, 4)
