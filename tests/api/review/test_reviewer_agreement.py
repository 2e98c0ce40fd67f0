"""Agreement of people who reviewed the same photograph."""

from datetime import UTC, datetime, timedelta

from api.database.database import write_transaction
from api.record.filters import Filters
from api.review.reviewer_agreement import query_agreement
from api.review.reviews import ReviewChange, ReviewDecision, set_review, undo_review
from tests.api.record.filled_record import make_row, stock

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def review(connection, record_id, *reviews):
    for label, reviewer in reviews:
        change = ReviewChange(record_id, None, None, reviewer, NOW)
        set_review(connection, change, ReviewDecision(label, NOW, reviewer))


def test_reviews_of_different_people_are_compared(engine):
    stock(engine, [make_row(number, inspected_at=NOW, station=f"s{number % 2}") for number in range(1, 9)])
    with write_transaction(engine) as connection:
        review(connection, 1, ("good", "anna"), ("good", "bob"))
        review(connection, 2, ("dent", "anna"), ("scratch", "bob"))  # both a defect
        review(connection, 3, ("good", "anna"), ("dent", "bob"), ("dent", "eva"))
        review(connection, 4, ("good", "anna"), ("dent", "anna"))  # the same person
        review(connection, 5, ("unsure", "anna"), ("dent", "bob"))
        review(connection, 6, ("good", "anna"))
        review(connection, 7, ("good", "anna"))
        undo_review(connection, ReviewChange(7, None, None, "bob", NOW))

        def count(**filters):
            found = query_agreement(connection, Filters(**filters))
            return found.reviewed_twice, found.agreed

        assert count() == (4, 3)
        assert count(station="s0") == (1, 1)
        assert count(since=NOW + timedelta(hours=1)) == (0, 0)
