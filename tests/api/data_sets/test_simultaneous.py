"""Several people change a data set at the same time."""

from concurrent.futures import ThreadPoolExecutor

from api.data_sets.annotations import list_annotations
from api.data_sets.photograph_leases import Labeller, lease_next
from api.data_sets.photographs import PhotographFilters, list_photographs
from api.errors import RequestError
from tests.api.data_sets.filled_data_set import NOW, mask_of
from tests.api.record.databases import both_databases

PEOPLE = range(8)


def at_once(change):
    """Calls `change` with each person in a thread of its own; returns results, and codes of refusals."""

    def attempt(person):
        try:
            return change(person)
        except RequestError as refusal:
            return refusal.code

    with ThreadPoolExecutor(len(PEOPLE)) as threads:
        return list(threads.map(attempt, PEOPLE))


@both_databases
def test_one_of_several_simultaneous_annotations_is_added(filled, tmp_path):
    number = filled.add(1).id
    outcomes = at_once(
        lambda person: filled.annotate(
            number, "dent", mask_of((2, person, person)), author=f"person {person}"
        )
    )
    assert outcomes.count("annotation_changed") == len(PEOPLE) - 1
    (annotation,) = filled.read(list_annotations, number).annotations
    assert annotation.id in outcomes
    files = list((tmp_path / "data_sets").glob("??/*"))
    assert len(files) == 2 and not list(filled.stored.marked())  # the photograph and one mask


@both_databases
def test_a_photograph_that_several_send_is_added_once(filled):
    outcomes = [added.outcome for added in at_once(lambda _: filled.add(1))]
    assert sorted(outcomes) == ["added", *["present"] * (len(PEOPLE) - 1)]


@both_databases
def test_equal_names_become_different(filled):
    at_once(lambda person: filled.add(person, name="a.png"))
    page = filled.read(list_photographs, PhotographFilters(), 0, 99, NOW)
    assert {one.name for one in page.photographs} == {"a.png", *(f"a.png ({n})" for n in range(2, 9))}


@both_databases
def test_everybody_gets_another_photograph(filled):
    for number in range(5):
        filled.add(number)
    taken = at_once(
        lambda person: filled.write(lease_next, Labeller(f"tab {person}", "Ada"), 1, (), NOW).photographs
    )
    names = [photograph.name for photographs in taken for photograph in photographs]
    assert sorted(names) == ["0", "1", "2", "3", "4"]


@both_databases
def test_a_version_is_made_once(filled):
    filled.annotate(filled.add(1).id, "good")
    assert set(at_once(lambda _: filled.make_version())) == {1}
