"""Queries of large data sets use indexes in SQLite: they do not read those of other data sets."""

import pytest

from api.data_sets.definitions import show_data_set
from api.data_sets.photographs import PhotographFilters, find_missing, list_photographs
from api.data_sets.versions import find_file, take_snapshot
from tests.api.data_sets.filled_data_set import NOW, photograph_file
from tests.api.record.query_plans import explain

QUERIES = {
    "a page": (list_photographs, PhotographFilters(), 7, 100, NOW),
    "a label": (list_photographs, PhotographFilters(label="good"), 7, 100, NOW),
    "unlabelled ones": (list_photographs, PhotographFilters(state="unlabelled"), 7, 100, NOW),
    "proposed ones": (list_photographs, PhotographFilters("unlabelled", "good"), 7, 100, NOW),
    "corrected ones": (list_photographs, PhotographFilters("corrected"), 7, 100, NOW),
    "a search": (list_photographs, PhotographFilters(search="a"), 7, 100, NOW),
    "counts": (show_data_set,),
    "missing ones": (find_missing, [bytes(32)]),
    "a version": (take_snapshot,),
    "a file": (find_file, photograph_file(1).sha256),
}


@pytest.mark.parametrize(("query", "args"), [(query, args) for query, *args in QUERIES.values()], ids=QUERIES)
def test_queries_use_indexes(filled, query, args):
    filled.annotate(filled.add(1).id, "good")

    with filled.engine.connect() as connection:
        plans = explain(connection, query, filled.id, *args)
    steps = [step for plan in plans.values() for step in plan if "data_set_" in step]
    assert steps and not [step for step in steps if step.startswith("SCAN")]
