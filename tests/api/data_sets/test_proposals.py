"""Rows of proposals, the order in which photographs are labelled, and what a prediction proposes."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import select

from api.data_sets.definitions import create_data_set
from api.data_sets.job_schemas import ProposalProgress
from api.data_sets.photograph_leases import Labeller, lease_next, lease_photograph, release_all
from api.data_sets.photographs import PhotographFilters, list_photographs, remove_photograph, show_photograph
from api.data_sets.proposals import (
    PROPOSAL_JOBS,
    add_proposal,
    find_proposed_mask,
    list_labelled,
    list_unlabelled,
    most_useful_first,
    order_proposals,
    show_run,
    start_run,
)
from api.data_sets.proposed_labels import NewProposal, find_value, make_proposal, measure_distance
from api.data_sets.tables import data_set_photographs as photographs
from api.database.database import write_transaction
from api.errors import RequestError
from api.inspecting.background_inspector import BackgroundResult
from api.messages.causes import Cause, Failure
from segdec.config import Calibration, Thresholds
from segdec.images import decode_mask_values
from tests.api.conftest import StubPredictor, part_image
from tests.api.data_sets.filled_data_set import NOW
from tests.api.record.databases import both_databases
from tests.api.record.query_plans import explain

SURE = NewProposal("good", 0.01, 4.6, "sure")
NEAR = NewProposal("scratch", 0.6, 0.4, "uncertain", b"a mask")
UNLIKE = NewProposal(None, None, None, "unlike_training")


def start(filled, count=1, now=NOW):
    """Starts a run; returns its id."""
    progress = ProposalProgress(model="brackets", version="2", photographs=count)
    return filled.write(start_run, progress, "Ada", now)


def propose(filled, photograph_id, new, job_id=None):
    """Adds a proposal to a run, if no other is named to the latest one."""
    run = filled.read(show_run, NOW)
    progress = ProposalProgress.model_validate(run.model_dump())
    filled.write(add_proposal, job_id or run.id, photograph_id, new, progress, NOW)


# === The run ===


def test_a_run_counts_what_it_does_and_leaves_labelled_photographs_alone(filled):
    ids = [filled.add(number).id for number in range(3)]
    start(filled, 4)
    filled.annotate(ids[1], "good")
    filled.write(remove_photograph, ids[2], "Ada", NOW)
    for number in ids:
        propose(filled, number, SURE)
    shown = filled.read(show_run, NOW)
    assert (shown.state, shown.done, shown.proposed, shown.left_out) == ("running", 3, 1, 0)
    assert (shown.model, shown.version, shown.photographs) == ("brackets", "2", 4)
    assert filled.read(show_photograph, ids[1], NOW).proposal is None
    assert filled.read(show_photograph, ids[2], NOW).proposal is None


def test_photographs_with_problems_are_counted_and_the_first_problem_is_kept():
    too_large = Cause(code="too_many_pixels", values={"name": "3", "detail": "too large"})
    progress = ProposalProgress(model="brackets", version="2", photographs=2)
    progress = progress.with_problem(Failure("3: too large", too_large)).with_problem(Failure("another"))
    assert (progress.done, progress.proposed, progress.left_out) == (2, 0, 2)
    assert (progress.problem, progress.problem_cause) == ("3: too large", too_large)


def test_a_run_replaces_an_interrupted_one_with_its_proposals(filled):
    number = filled.add(1).id
    first = start(filled)
    propose(filled, number, SURE)
    with pytest.raises(RequestError, match="is running: proposals"):
        start(filled)
    late = NOW + timedelta(seconds=61)
    assert filled.read(show_run, late).error_cause == PROPOSAL_JOBS.interrupted.cause
    assert filled.read(show_photograph, number, late).proposal.label == "good"
    start(filled, now=late)
    assert filled.read(show_photograph, number, late).proposal is None
    with pytest.raises(RequestError, match="Another job has replaced"):
        propose(filled, number, SURE, first)
    assert filled.read(show_photograph, number, late).proposal is None


def test_without_a_run_there_is_nothing(filled):
    number = filled.add(1).id
    assert filled.read(show_run, NOW) is None
    with pytest.raises(RequestError, match="no proposed mask"):
        filled.read(find_proposed_mask, number)
    assert [(one.id, one.name) for one in filled.read(list_unlabelled)] == [(number, "1")]
    filled.annotate(number, "good")
    assert filled.read(list_unlabelled) == []


# === The order ===


@both_databases
def test_the_most_useful_photograph_is_the_next_one(filled):
    ids = {name: filled.add(at, name=name).id for at, name in enumerate(["none", "sure", "near", "unlike"])}
    start(filled, 4)
    for name, new in {"sure": SURE, "near": NEAR, "unlike": UNLIKE}.items():
        propose(filled, ids[name], new)
    leased = filled.write(lease_next, Labeller("a tab", "Ada"), 5, [], NOW).photographs
    assert [one.name for one in leased] == ["unlike", "near", "sure", "none"]
    assert leased[0].proposal.model_dump() == {
        **{"label": None, "score": None, "model": "brackets", "version": "2"},
        **{"reason": "unlike_training", "has_mask": False},
    }
    assert (leased[1].proposal.label, leased[1].proposal.score, leased[1].proposal.has_mask) == (
        *("scratch", 0.6, True),
    )
    assert leased[3].proposal is None
    assert filled.read(find_proposed_mask, ids["near"]) == b"a mask"


def test_a_photograph_whose_label_is_withdrawn_has_its_proposal_again(filled):
    number = filled.add(1).id
    start(filled)
    propose(filled, number, NEAR)
    first = filled.annotate(number, "good")
    assert filled.read(show_photograph, number, NOW).proposal is None
    filled.annotate(number, None, based_on=first)
    assert filled.read(show_photograph, number, NOW).proposal.label == "scratch"


def test_photographs_that_this_session_has_come_first_and_those_of_others_never(filled):
    ids = [filled.add(number).id for number in range(4)]
    start(filled, 4)
    for number, distance in zip(ids, (0.4, 0.3, 0.2, 0.1), strict=True):
        propose(filled, number, replace(NEAR, distance=distance))
    ada, ben = Labeller("a tab", "Ada"), Labeller("another", "Ben")
    filled.write(lease_photograph, ids[0], ada, NOW)
    leased = filled.write(lease_next, ben, 1, [ids[3]], NOW).photographs
    assert [one.id for one in leased] == [ids[2]]
    leased = filled.write(lease_next, ada, 5, [], NOW).photographs
    assert [one.id for one in leased] == [ids[0], ids[3], ids[1]]


def test_proposals_of_another_data_set_do_not_matter(filled):
    number = filled.add(1).id
    with write_transaction(filled.engine) as connection:
        other = create_data_set(connection, "Others", ["dent"], "Ada", NOW)
    others = replace(filled, id=other)
    theirs = others.add(1).id
    for each, photograph in ((filled, number), (others, theirs)):
        start(each)
        propose(each, photograph, NEAR)
    leased = filled.write(lease_next, Labeller("a tab", "Ada"), 5, [], NOW).photographs
    assert [one.id for one in leased] == [number]


@both_databases
def test_a_session_gets_only_photographs_that_match(filled):
    names = ("proposed", "good", "accepted", "corrected", "refused", "labelled", "removed")
    ids = {name: filled.add(at, name=name).id for at, name in enumerate(names)}
    start(filled, 6)
    for name, new in {"proposed": NEAR, "good": SURE, "accepted": NEAR, "corrected": NEAR}.items():
        propose(filled, ids[name], new)
    propose(filled, ids["refused"], UNLIKE)
    propose(filled, ids["removed"], NEAR)
    for name in ("corrected", "labelled", "refused"):
        filled.annotate(ids[name], "dent")
    filled.annotate(ids["accepted"], "scratch")
    filled.write(remove_photograph, ids["removed"], "Ada", NOW)

    def names_of(*filters):
        """Names of the leased and of the listed photographs."""
        wanted = PhotographFilters(*filters)
        leased = filled.write(lease_next, Labeller("a tab", "Ada"), 5, [], NOW, wanted).photographs
        filled.write(release_all, "a tab")
        listed = filled.read(list_photographs, wanted, 0, 9, NOW).photographs
        assert {one.name for one in leased} == {one.name for one in listed}
        return [one.name for one in leased]

    assert names_of("unlabelled") == ["proposed", "good"]
    assert names_of("unlabelled", "scratch") == ["proposed"]
    assert names_of("labelled", "dent") == ["corrected", "labelled", "refused"]  # the oldest annotation first
    assert names_of("labelled", "good") == []
    assert names_of("corrected") == ["corrected"]
    assert names_of("corrected", "scratch") == []
    assert filled.read(show_photograph, ids["corrected"], NOW).proposed_label == "scratch"
    filled.annotate(ids["corrected"], "dent", based_on=1)
    assert names_of("labelled") == ["labelled", "refused", "accepted", "corrected"]


@both_databases
def test_a_run_sets_the_order_and_says_which_photographs_differ(filled):
    ids = {name: filled.add(at, name=name).id for at, name in enumerate(["sure", "near", "far"])}
    start(filled, 3)
    for name, new in {"sure": SURE, "near": NEAR, "far": replace(SURE, distance=9.0)}.items():
        propose(filled, ids[name], new)
    ordered = [ids[name] for name in ("far", "sure", "near")]
    with write_transaction(filled.engine) as connection:
        order_proposals(connection, ordered, [ids["far"]])
    leased = filled.write(lease_next, Labeller("a tab", "Ada"), 5, [], NOW).photographs
    assert [(one.name, one.proposal.reason) for one in leased] == [
        ("far", "different"),
        ("sure", "sure"),
        ("near", "uncertain"),
    ]


def test_labelled_photographs_are_listed_evenly(filled):
    ids = [filled.add(number).id for number in range(7)]
    for number in ids[:6]:
        filled.annotate(number, "good")
    filled.write(remove_photograph, ids[5], "Ada", NOW)
    assert [one.id for one in filled.read(list_labelled, 9)] == ids[:5]
    assert [one.id for one in filled.read(list_labelled, 3)] == [ids[0], ids[2], ids[4]]


def test_the_order_of_proposals_is_that_of_an_index(filled):
    number = filled.add(1).id
    start(filled)
    propose(filled, number, NEAR)

    def choose(connection, data_set_id):
        waiting = select(photographs.c.id).where(photographs.c.data_set_id == data_set_id)
        return [connection.execute(part).all() for part in most_useful_first(data_set_id, waiting)]

    with filled.engine.connect() as connection:
        plans = explain(connection, choose, filled.id)
    steps = [step for plan in plans.values() for step in plan]
    assert any("data_set_proposals_by_rank" in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN data_set") or "TEMP B-TREE" in step]


# === What a prediction proposes ===


def predict(brightness=204, spot_from=None, threshold=0.5):
    """Returns the prediction for a part with a defect, and the model."""
    predictor = StubPredictor()
    if spot_from is not None:
        predictor.have_classes(spot_from)
    image = part_image(brightness=brightness)
    prediction = predictor.interpret(
        predictor.infer(image[np.newaxis]), 0, (24, 40), unlike=False, threshold=threshold
    )
    return prediction, predictor.config


def test_a_defect_gets_the_class_of_the_same_name():
    prediction, model = predict()
    new = make_proposal(BackgroundResult(prediction, None), model, ["dent", "Scratch"])
    assert (new.label, new.reason) == ("Scratch", "sure")
    assert new.distance == pytest.approx(8 * 0.8 - 4)
    mask = decode_mask_values(new.mask, "mask", max_pixels=960, classes=[1, 2])
    expected = np.zeros((24, 40), np.uint8)
    expected[8:12, 10:16] = 2
    np.testing.assert_array_equal(mask, expected)


def test_each_class_of_a_mask_gets_its_value_and_unknown_ones_the_first():
    prediction, model = predict(spot_from=13)
    new = make_proposal(BackgroundResult(prediction, None), model, ["dent", "spot"])
    mask = decode_mask_values(new.mask, "mask", max_pixels=960, classes=[1, 2])
    assert new.label == "dent"
    assert (mask[8:12, 10:13] == 1).all() and (mask[8:12, 13:16] == 2).all()
    assert np.count_nonzero(mask) == 24


@pytest.mark.parametrize(
    ("name", "value"), [("spot", 2), ("SPOT", 3), ("s p-o_t", 2), ("crack", 1), ("dent", 1)]
)
def test_classes_are_found_by_their_name(name, value):
    assert find_value(name, ["dent", "spot", "SPOT"]) == value


def test_a_good_photograph_has_no_mask_and_an_uncertain_one_says_so():
    prediction, model = predict(threshold=0.85)
    new = make_proposal(BackgroundResult(prediction, None), model, ["scratch"])
    assert (new.label, new.mask, new.reason) == ("good", None, "uncertain")
    assert prediction.mask.any()


def test_the_range_of_review_is_uncertain():
    prediction, model = predict(threshold=0.9999)
    unsure = model.model_copy(update={"thresholds": Thresholds(score=0.9999, review=0.5)})
    assert make_proposal(BackgroundResult(prediction, None), model, ["scratch"]).reason == "sure"
    assert make_proposal(BackgroundResult(prediction, None), unsure, ["scratch"]).reason == "uncertain"


def test_what_is_unlike_the_training_says_so_with_or_without_a_prediction():
    prediction, model = predict()
    assert make_proposal(BackgroundResult(None, "darker"), model, ["scratch"]) == UNLIKE
    new = make_proposal(BackgroundResult(prediction, "darker"), model, ["scratch"])
    assert (new.label, new.reason) == ("scratch", "unlike_training")


def test_a_model_is_least_certain_about_what_is_unlike_its_training():
    assert (SURE.certainty, NEAR.certainty, UNLIKE.certainty) == (4.6, 0.4, 0.0)
    assert replace(SURE, reason="unlike_training").certainty == 0
    assert replace(SURE, reason="uncertain").certainty == 1, "for review, but far from the threshold"


def test_distances_are_exact_where_scores_round_and_finite_for_any_threshold():
    prediction, model = predict()
    far = replace(prediction, log_odds=100.0, score=1.0)
    assert measure_distance(far, model) == 100
    calibrated = model.model_copy(update={"calibration": Calibration(slope=0.5, intercept=-1.0)})
    assert measure_distance(far, calibrated) == 49
    assert measure_distance(replace(prediction, threshold=0.0), model) == pytest.approx(2.4 + 20.7, abs=0.1)
    assert measure_distance(replace(prediction, threshold=1.0), model) == pytest.approx(20.7 - 2.4, abs=0.1)
