"""Photographs of a data set: names, removal, lists, leases."""

from datetime import timedelta

import pytest

from api.data_sets.definitions import change_data_set, create_data_set, list_data_sets, show_data_set
from api.data_sets.photograph_leases import (
    Labeller,
    lease_next,
    lease_photograph,
    release_all,
    release_photograph,
)
from api.data_sets.photographs import (
    MAX_NAME,
    PhotographFilters,
    find_missing,
    list_photographs,
    remove_photograph,
)
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.audit_view import list_changes
from api.review.leases import LEASE_DURATION
from tests.api.data_sets.filled_data_set import NOW, photograph_file
from tests.api.record.databases import both_databases

ADA, BOB = Labeller("tab 1", "Ada"), Labeller("tab 2", "Bob")


def names(filled, after=0, limit=100, **filters):
    page = filled.read(list_photographs, PhotographFilters(**filters), after, limit, NOW)
    return [one.name for one in page.photographs]


def code_of(refusal):
    return refusal.value.status, refusal.value.code


def test_classes_are_added_at_the_end_and_never_have_another_meaning(filled):
    def change(name=None, added=()):
        with write_transaction(filled.engine) as connection:
            change_data_set(connection, filled.id, name, added, False, "Ada")

    change("Brackets, line 3", ["  burr\u200b2\u00a0"])
    change("Brackets, line 3")
    shown = filled.read(show_data_set)
    assert (shown.name, shown.classes) == ("Brackets, line 3", ["scratch", "dent", "burr\ufffd2"])
    for name in (
        "good",
        "i.O.",
        "Ignore",
        "unsure",
        "review",
        "Undamaged",
        "no dent",
        "clean",
        "SCRATCH",
        " ",
        "",
        "x" * 129,
    ):
        with pytest.raises(RequestError, match="class") as refusal:
            change(added=[name])
        assert code_of(refusal) == (400, "bad_class")
    with pytest.raises(RequestError, match="at most 200: merge similar ones"):
        change(added=[f"class {number}" for number in range(200)])


def test_names_of_data_sets_are_unique(filled):
    with write_transaction(filled.engine) as connection:
        create_data_set(connection, "axles", [], "", NOW)
        for name, expected in (("Brackets", (409, "name_taken")), (" ", (400, "bad_name"))):
            with pytest.raises(RequestError) as refusal:
                create_data_set(connection, name, [], "", NOW)
            assert code_of(refusal) == expected
        assert [one.name for one in list_data_sets(connection).data_sets] == ["axles", "Brackets"]


def test_a_photograph_is_added_once(filled):
    first = filled.add(1, part="7")
    assert (first.outcome, filled.add(1, name="other").outcome) == ("added", "present")
    filled.annotate(first.id, "good")
    filled.write(remove_photograph, first.id, "Bob", NOW)
    filled.write(remove_photograph, first.id, "Eve", NOW)
    (removed,) = filled.read(list_photographs, PhotographFilters(state="removed"), 0, 9, NOW).photographs
    assert (removed.name, removed.removed_by) == ("1", "Bob")
    assert names(filled) == []
    assert filled.add(1).outcome == "restored"
    (restored,) = filled.read(list_photographs, PhotographFilters(), 0, 9, NOW).photographs
    assert (restored.label, restored.part, restored.removed_at) == ("good", "7", None)
    changes = filled.read(lambda connection, _: list_changes(connection, None, 2)).changes
    assert [(one.who, one.what) for one in changes] == [
        ("Ada", "restore a photograph"),
        ("Bob", "remove a photograph"),
    ]


@both_databases
def test_hostile_names(filled):
    formula = '=HYPERLINK("http://x")'
    long = "x" * 1000
    for number, name in enumerate(["a\x00b\nc", formula, long, long, "same", "same", "same", "  ", "%", "_"]):
        filled.add(number, name=name)
    digits = photograph_file(7).sha256.hex()[:32]
    shortened = "x" * (MAX_NAME - 12) + " (2)"
    expected = [
        "a\ufffdb\ufffdc",
        formula,
        long[:MAX_NAME],
        shortened,
        "same",
        "same (2)",
        "same (3)",
        digits,
    ]
    assert names(filled) == [*expected, "%", "_"]
    assert names(filled, search="%") == ["%"] and names(filled, search="_") == ["_"]
    assert names(filled, search="SAME (") == ["same (2)", "same (3)"]


@both_databases
def test_pages_and_filters(filled):
    added = [filled.add(number, part=f"part {number // 2}") for number in range(6)]
    filled.annotate(added[1].id, "good")
    filled.annotate(added[2].id, "scratch")
    filled.write(remove_photograph, added[5].id, "Ada", NOW)
    first = filled.read(list_photographs, PhotographFilters(), 0, 3, NOW)
    assert [one.name for one in first.photographs] == ["0", "1", "2"]
    assert names(filled, after=first.next_after) == ["3", "4"]
    assert filled.read(list_photographs, PhotographFilters(), 0, 5, NOW).next_after is None
    assert names(filled, state="labelled") == ["1", "2"] and names(filled, label="good") == ["1"]
    assert names(filled, state="unlabelled") == ["0", "3", "4"] and names(filled, state="removed") == ["5"]
    assert names(filled, search="PART 1") == ["2", "3"]
    counts = filled.read(show_data_set).counts
    assert counts.model_dump() == {
        "photographs": 5,
        "labelled": 2,
        "unlabelled": 3,
        "removed": 1,
        "labels": {"good": 1, "scratch": 1},
    }


@both_databases
def test_missing_photographs_are_found_by_their_content(filled):
    kept, removed = filled.add(1), filled.add(2)
    filled.write(remove_photograph, removed.id, "Ada", NOW)
    digests = [photograph_file(number).sha256 for number in (3, 2, 1)]
    found = filled.read(find_missing, digests)
    assert found.missing == [digests[0].hex()]
    assert {one.id: one.is_removed for one in found.present} == {kept.id: False, removed.id: True}


# === Leases ===


def take(filled, labeller, skip=(), now=NOW):
    """Returns the name of the next photograph, None if there is none."""
    return next(iter(take_several(filled, labeller, 1, skip, now)), None)


def take_several(filled, labeller, count, skip=(), now=NOW):
    return [one.name for one in filled.write(lease_next, labeller, count, skip, now).photographs]


@both_databases
def test_two_people_get_different_photographs(filled):
    added = [filled.add(number) for number in range(3)]
    assert [take(filled, ADA), take(filled, BOB), take(filled, ADA)] == ["0", "1", "0"]
    assert take(filled, ADA, skip=[added[0].id]) == "2"
    assert take(filled, BOB, skip=[added[1].id]) == "0"
    filled.annotate(added[0].id, "good", session="tab 2")
    filled.annotate(added[2].id, "good", session="tab 1")
    assert take(filled, ADA) == "1" and take(filled, BOB) is None
    assert take(filled, BOB, now=NOW + LEASE_DURATION) == "1"


def test_several_photographs_are_leased_at_once_and_given_back(filled):
    for number in range(4):
        filled.add(number)
    assert take_several(filled, ADA, 2) == ["0", "1"]
    assert take_several(filled, BOB, 5) == ["2", "3"]
    late = NOW + LEASE_DURATION / 2
    leased = filled.write(lease_next, BOB, 1, (), late)
    assert (leased.leased_until, leased.unlabelled) == (late + LEASE_DURATION, 4)
    filled.write(release_all, "tab 1")
    assert take_several(filled, BOB, 4) == ["2", "3", "0", "1"]


def test_a_user_gets_what_another_tab_of_hers_has_open_when_nothing_else_is_left(filled):
    ada, again = (Labeller(f"tab {number}", "Ada", user="Ada") for number in (1, 3))
    number = filled.add(1).id
    filled.add(2)
    assert [take(filled, ada), take(filled, BOB)] == ["1", "2"]
    assert take_several(filled, again, 2) == ["1"]
    filled.write(lease_photograph, number, ada, NOW)
    filled.annotate(number, "good", session="tab 3", user="Ada")
    assert take(filled, again) is None


def test_a_photograph_that_somebody_has_open_is_named(filled):
    number = filled.add(1).id
    shown = filled.write(lease_photograph, number, ADA, NOW).photographs[0]
    assert shown.opened_by == "Ada"
    with pytest.raises(RequestError, match="Ada has the photograph '1' open") as refusal:
        filled.write(lease_photograph, number, BOB, NOW + timedelta(seconds=1))
    assert code_of(refusal) == (409, "leased")
    for session in ("tab 2", None):
        with pytest.raises(RequestError, match="Ada has the photograph"):
            filled.annotate(number, "good", session=session)
    filled.write(release_photograph, number, "tab 2")  # not its lease
    filled.write(release_photograph, number, "tab 1")
    assert filled.write(lease_photograph, number, BOB, NOW).photographs[0].opened_by == "Bob"
    late = NOW + LEASE_DURATION
    page = filled.read(list_photographs, PhotographFilters(), 0, 9, late)
    assert page.photographs[0].opened_by is None
