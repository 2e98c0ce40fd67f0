"""Verdicts of plans about rendered predictions: 100 × 60 px, 0.1 mm per px."""

from dataclasses import replace

import numpy as np
import pytest

from segdec.config import InputConfig, SizeErrors
from segdec.errors import ConfigError, ImageError
from segdec.plan.defect_measuring import MAX_DEFECTS
from segdec.plan.judgement import PlanJudge
from segdec.plan.sentences import finding_sentence
from tests.segdec.plan.plans import HEIGHT, WIDTH, make_model, make_plan, predict, rectangle, scores_of

LONG = {"defect": "scratch", "longer_than": "2 mm", "then": "reject"}
BODY = rectangle(0, 0, 50, 60, rules=[LONG])
EDGE = rectangle(50, 0, 30, 60, rules=[{"then": "stop"}])
DUST = rectangle(80, 0, 20, 60, ignored=True)
ZONES = {"body": BODY, "edge": EDGE, "dust": DUST}


def judged(prediction, model=None, plan=None, *, unlike=False):
    judge = PlanJudge(plan or make_plan(ZONES), model or make_model())
    return judge.judge(prediction, unlike=unlike)


def verdict(*defects, zones=ZONES, model=None, otherwise=None, **prediction):
    model = model or make_model()
    plan = make_plan(zones, **({} if otherwise is None else {"otherwise": otherwise}))
    judgement = judged(predict(scores_of(*defects), model, **prediction), model, plan)
    return judgement.label, judgement.severity


@pytest.mark.parametrize(
    ("defects", "expected"),
    [
        ([(10, 10, 10, 2)], ("good", "accept")),  # 1 mm
        ([(10, 10, 30, 2)], ("scratch", "reject")),  # 3 mm
        ([(10, 10, 20, 2)], ("review", "review")),  # 2 mm, uncertain by a pixel
        ([(60, 10, 3, 2)], ("scratch", "stop")),
        ([(84, 10, 10, 9)], ("good", "accept")),
        ([(10, 10, 10, 2), (84, 10, 10, 9)], ("good", "accept")),
        ([(10, 10, 30, 2), (60, 10, 3, 2)], ("scratch", "stop")),  # the worst decides
        ([(45, 10, 10, 2)], ("scratch", "stop")),  # in two zones
        ([(75, 10, 10, 2)], ("scratch", "stop")),  # only partly in the ignored zone
    ],
)
def test_zones_and_lengths(defects, expected):
    assert verdict(*defects) == expected


def test_a_whole_defect_is_measured_even_if_only_its_end_is_in_the_zone():
    zones = {"body": rectangle(0, 0, 20, 60, rules=[LONG])}
    assert verdict((18, 10, 30, 2), zones=zones) == ("scratch", "reject")


def test_deciding_finding_has_zone_rule_and_measure():
    plan = make_plan(ZONES)
    judgement = judged(predict(scores_of((10, 10, 30, 2)), make_model()), plan=plan)
    finding = judgement.findings[0]
    assert (finding.zone, finding.rule, finding.defect, finding.unit) == ("body", 0, 0, "mm")
    assert finding.measured.value == pytest.approx(3.0, abs=0.1)
    assert judgement.defects[0].bbox == (10, 10, 30, 2)
    sentence = finding_sentence(finding, plan)
    assert sentence == "body: length of scratch 3 mm (2.9 to 3.1 possible), limit 2 mm: reject"


def test_good_by_the_model_stays_good():
    assert verdict((60, 10, 20, 20), score=0.1) == ("good", "accept")


def test_a_rule_is_stricter_than_an_ignored_zone():
    """An ignored zone over the whole photograph accepts only what touches no zone with rules."""
    zones = {"body": BODY, "background": rectangle(0, 0, WIDTH, HEIGHT, ignored=True)}
    assert verdict((60, 10, 20, 20), zones=zones) == ("good", "accept")
    assert verdict((10, 10, 30, 2), zones=zones) == ("scratch", "reject")


def test_a_zone_that_is_cut_out_of_another():
    text = rectangle(20, 20, 20, 10, ignored=True)
    zones = {"body": BODY | {"without": ["text"]}, "text": text}
    assert verdict((24, 22, 10, 5), zones=zones, otherwise={"outside_zones": "stop"}) == ("good", "accept")
    assert verdict((2, 22, 30, 5), zones=zones) == ("scratch", "reject")


def test_in_the_review_range_a_plan_accepts_but_does_not_reject():
    assert verdict((10, 10, 10, 2), score=0.3) == ("good", "accept")
    assert verdict((60, 10, 20, 20), score=0.3) == ("review", "review")


def test_unlike_the_training_is_never_good():
    model = make_model()
    accepted = predict(scores_of((10, 10, 10, 2)), model)
    assert judged(accepted, model, unlike=True).label == "review"
    without_defect = predict(scores_of(), model, score=0.01, label="review")
    assert judged(without_defect, model, unlike=True).label == "review"


@pytest.mark.parametrize(
    ("then", "label"), [("review", "review"), ("reject", "scratch"), ("stop", "scratch")]
)
def test_a_score_without_a_defect_in_the_mask_is_not_good(then, label):
    assert verdict(otherwise={"unexplained": then}) == (label, then)


def test_a_mask_below_the_threshold_of_the_model_explains_nothing():
    model = make_model()
    scores = scores_of((84, 10, 10, 9), score=0.4)  # in the ignored zone
    judgement = judged(predict(scores, model, mask_threshold=0.2), model)
    assert (judgement.label, judgement.findings[0].cause) == ("scratch", "unexplained")


def test_a_weak_defect_beside_a_strong_one_is_judged():
    """A strong defect in the ignored zone raises the mask threshold of the photograph above the weak one."""
    model = make_model()
    thresholds = model.thresholds.model_copy(update={"mask_share": 0.4})
    model = model.model_copy(update={"thresholds": thresholds})
    scores = scores_of((84, 10, 10, 9), score=0.999)
    scores[10:12, 10:40] = 0.6
    prediction = predict(scores, model, mask_threshold=0.9)
    assert not prediction.mask[10, 10]
    assert judged(prediction, model).label == "scratch"


def test_a_defect_that_may_reach_out_of_the_ignored_zone_is_for_review():
    model = make_model()
    thresholds = model.thresholds.model_copy(update={"mask_share": 0.4})
    model = model.model_copy(update={"thresholds": thresholds})
    scores = scores_of((84, 10, 10, 9), score=0.999)
    scores[10:12, 70:84] = 0.6  # connected, and below the raised threshold
    judgement = judged(predict(scores, model, mask_threshold=0.9), model)
    assert (judgement.label, judgement.findings[0].zone) == ("review", "edge")


@pytest.mark.parametrize(
    ("then", "expected"), [(None, "review"), ("accept", "good"), ("note", "good"), ("reject", "scratch")]
)
def test_outside_all_zones(then, expected):
    zones = {"body": BODY}
    label, _ = verdict((60, 10, 9, 9), zones=zones, otherwise=then and {"outside_zones": then})
    assert label == expected


def test_a_note_is_good_and_recorded():
    zones = {"body": rectangle(0, 0, 50, 60, rules=[{"longer_than": "1 mm", "then": "note"}])}
    assert verdict((10, 10, 20, 2), zones=zones) == ("good", "note")


@pytest.mark.parametrize(
    ("rule", "small", "large"),
    [
        ({"wider_than": "0.5 mm"}, (10, 10, 20, 3), (10, 10, 20, 8)),
        ({"wider_than": "5 px"}, (10, 10, 20, 3), (10, 10, 20, 8)),
        ({"larger_than": "1 mm²"}, (10, 10, 6, 6), (10, 10, 15, 15)),
        ({"larger_than": "100 px2"}, (10, 10, 6, 6), (10, 10, 15, 15)),
        ({"longer_than": "20 px"}, (10, 10, 6, 6), (10, 10, 30, 3)),
    ],
)
def test_limits_of_one_defect(rule, small, large):
    zones = {"body": rectangle(0, 0, 50, 60, rules=[rule | {"then": "reject"}])}
    assert verdict(small, zones=zones) == ("good", "accept")
    assert verdict(large, zones=zones) == ("scratch", "reject")


def test_number_of_defects():
    many = {"more_than": 2, "counted_from": "0.5 mm", "then": "reject"}
    zones = {"body": rectangle(0, 0, 50, 60, rules=[LONG, many])}
    pores = [(5 + 10 * n, 10, 8, 2) for n in range(4)]
    assert verdict(*pores[:2], zones=zones) == ("good", "accept")
    assert verdict(*pores[:3], zones=zones) == ("scratch", "reject")
    specks = [(x, y, 1, 1) for x, y, _, _ in pores]
    assert verdict(*specks, zones=zones) == ("good", "accept")


def test_total_area():
    total = {"total_larger_than": "1 mm²", "then": "reject"}
    zones = {"body": rectangle(0, 0, 50, 60, rules=[LONG, total])}
    assert verdict((5, 10, 6, 6), zones=zones) == ("good", "accept")
    assert verdict((5, 10, 10, 9), (25, 10, 10, 9), zones=zones) == ("scratch", "reject")


def test_classes_without_a_rule_follow_otherwise():
    model = make_model("scratch", "pore", mask_classes=True)
    scores, classes = scores_of((10, 10, 5, 2)), np.full((HEIGHT, WIDTH), 2, np.uint8)
    strict, lenient = make_plan({"body": BODY}), make_plan({"body": BODY | {"otherwise": "accept"}})
    prediction = predict(scores, model, classes=classes)
    judgement = judged(prediction, model, strict)
    assert (judgement.label, judgement.findings[0].cause) == ("pore", "otherwise")
    assert judged(prediction, model, lenient).label == "good"


def test_a_defect_of_two_classes_needs_a_rule_for_both():
    model = make_model("scratch", "pore", mask_classes=True)
    scores, classes = scores_of((10, 10, 10, 2)), np.ones((HEIGHT, WIDTH), np.uint8)
    classes[:, 17:] = 2
    judgement = judged(predict(scores, model, classes=classes), model, make_plan({"body": BODY}))
    assert judgement.defects[0].classes == ("scratch", "pore")
    assert (judgement.label, judgement.findings[0].cause) == ("pore", "otherwise")
    assert judgement.findings[0].classes == ("pore",)


def test_the_size_of_a_defect_of_two_classes_is_uncertain_for_one_class():
    model = make_model("scratch", "pore", mask_classes=True)
    scores, classes = scores_of((10, 10, 35, 2)), np.ones((HEIGHT, WIDTH), np.uint8)
    classes[:, 40:] = 2
    rules = [LONG, {"defect": "pore", "longer_than": "2 mm", "then": "stop"}]
    plan = make_plan({"body": rectangle(0, 0, 50, 60, rules=rules)})
    assert judged(predict(scores, model, classes=classes), model, plan).label == "review"


def test_sizes_with_unknown_errors_lead_to_review():
    assert verdict((10, 10, 10, 2), model=make_model(errors=None)) == ("review", "review")
    assert verdict((10, 10, 30, 2), model=make_model(errors=None)) == ("review", "review")


def test_limits_of_true_sizes_from_the_model():
    errors = SizeErrors(length=(0.5, 1.5), width=(1, 1), area=(1, 1), defects=30)
    model = make_model(errors=errors)
    assert verdict((10, 10, 10, 2), model=model) == ("good", "accept")  # at most 1.5 mm
    assert verdict((10, 10, 14, 2), model=model) == ("review", "review")  # at most 2.1 mm
    assert verdict((5, 10, 38, 2), model=model) == ("review", "review")  # at least 1.9 mm
    assert verdict((5, 10, 43, 2), model=model) == ("scratch", "reject")  # at least 2.15 mm


def test_the_largest_possible_size_is_that_of_the_weak_scores_around():
    model = make_model()
    scores = scores_of((10, 10, 10, 2))
    scores[10:12, 20:40] = 0.1  # below the mask threshold, and less than 3 in log-odds
    assert judged(predict(scores, model), model).label == "review"
    scores[10:12, 20:40] = 0.04
    assert judged(predict(scores, model), model).label == "good"


def test_a_weak_part_in_another_zone_leads_to_review():
    model = make_model()
    scores = scores_of((84, 10, 10, 9))  # in the ignored zone
    scores[10:19, 20:84] = 0.45  # below the mask threshold, over the zones body and edge
    judgement = judged(predict(scores, model), model)
    assert (judgement.label, judgement.defects[0].possible_zones) == ("review", ("body", "edge"))


@pytest.mark.parametrize("box", [(0, 10, 10, 2), (10, 0, 10, 2), (10, 58, 10, 2)])
def test_the_size_of_a_defect_that_is_cut_by_the_border_has_no_upper_limit(box):
    assert verdict(box) == ("review", "review")


def test_the_size_of_a_defect_that_is_cut_by_the_inspected_area_has_no_upper_limit():
    ignored = ((0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.0, 1.0))
    model = make_model(input=InputConfig(ignored_areas=(ignored,)))
    plan = make_plan({"body": rectangle(10, 0, 40, 60, rules=[LONG])})
    prediction = predict(scores_of((10, 10, 10, 2)), model)
    assert judged(prediction, model, plan).label == "review"
    assert judged(predict(scores_of((12, 10, 10, 2)), model), model, plan).label == "good"


def test_more_doubtful_pixels_never_make_a_size_smaller():
    """A compact part has no centre line: the pixels that may belong to a bent defect can be shorter."""
    model = make_model(errors=SizeErrors(length=(0.5, 1.5), width=(1, 1), area=(1, 1), defects=30))
    scores = scores_of((20, 10, 40, 3), (20, 40, 40, 3), (20, 10, 3, 33))
    alone = judged(predict(scores, model), model).defects[0].sizes.length
    scores[10:43, 20:60] = np.maximum(scores[10:43, 20:60], 0.4)
    filled = judged(predict(scores, model), model).defects[0].sizes.length
    assert filled.high >= alone.high > 150


def test_parts_that_may_be_one_defect_count_once_for_certain():
    many = {"more_than": 2, "counted_from": "0.5 mm", "then": "stop"}
    plan = make_plan({"body": rectangle(0, 0, 100, 60, rules=[LONG, many])})
    model, scores = make_model(), scores_of((10, 10, 8, 2), (30, 10, 8, 2), (50, 10, 8, 2))
    assert judged(predict(scores, model), model, plan).label == "scratch"
    scores[10:12, 10:58] = np.maximum(scores[10:12, 10:58], 0.45)
    assert judged(predict(scores, model), model, plan).label == "review"


def test_rules_of_the_whole_part():
    rules = [{"more_than": 2, "counted_from": "0.5 mm", "then": "reject"}]
    model, plan = make_model(), make_plan(ZONES, part={"rules": rules})
    boxes = [(10, 10, 8, 2), (30, 10, 8, 2)]
    assert (
        judged(predict(scores_of(*boxes, (84, 10, 8, 2)), model), model, plan).label == "good"
    )  # one ignored
    judgement = judged(predict(scores_of(*boxes, (10, 30, 8, 2)), model), model, plan)
    assert judgement.label == "scratch"
    expected = "whole part: number of defect 3, limit 2: reject"
    assert finding_sentence(judgement.findings[0], plan) == expected


@pytest.mark.parametrize(("gap", "expected"), [(30, "good"), (19, "review"), (10, "scratch")])
def test_distance_of_two_defects(gap, expected):
    close = {"closer_than": "2 mm", "counted_from": "0.3 mm", "then": "reject"}
    zones = {"body": rectangle(0, 0, 100, 60, rules=[LONG, close])}
    assert verdict((10, 10, 8, 2), (18 + gap, 10, 8, 2), (10, 20, 1, 1), zones=zones)[0] == expected


def test_a_share_of_the_zone():
    share = {"total_larger_than": "1 %", "then": "reject"}  # 30 px of 3000
    zones = {"body": rectangle(0, 0, 50, 60, rules=[LONG, share])}
    assert verdict((10, 10, 4, 4), zones=zones)[0] == "good"
    assert verdict((10, 10, 9, 9), zones=zones)[0] == "scratch"


def test_a_rule_for_high_mask_scores():
    strict = {"longer_than": "1 mm", "min_score": 0.8, "then": "reject"}
    plan = make_plan({"body": rectangle(0, 0, 50, 60, otherwise="review", rules=[strict])})
    model = make_model()
    strong, weak = (scores_of((10, 10, 30, 2), score=score) for score in (0.9, 0.6))
    assert judged(predict(strong, model), model, plan).label == "scratch"
    assert judged(predict(weak, model), model, plan).label == "review"


def test_too_many_defects_are_for_review():
    model = make_model()
    scores = np.full((HEIGHT, WIDTH), 0.01, np.float32)
    scores[::4, ::4] = 0.9
    assert np.count_nonzero(scores > 0.5) > MAX_DEFECTS
    zones = {"body": rectangle(0, 0, WIDTH, HEIGHT, rules=[LONG])}
    judgement = judged(predict(scores, model), model, make_plan(zones))
    assert judgement.label == "review"
    assert "too_many_defects" in [finding.cause for finding in judgement.findings]
    assert len(judgement.defects) == MAX_DEFECTS


def test_nothing_changes_a_photograph_of_another_size():
    model = make_model()
    prediction = predict(scores_of(), model, score=0.01)
    other = replace(prediction, mask=prediction.mask[:-1])
    with pytest.raises(ImageError, match="100 × 59 px, but the plan 'housing' is for 100 × 60 px") as raised:
        judged(other, model)
    assert raised.value.code == "plan_size"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_model("crack"), "names the defect 'scratch'. Expected a class of the model: crack"),
        (make_model("scratch", "pore"), "does not distinguish its classes"),
        (
            make_model(input=InputConfig(ignored_areas=(((0, 0), (0.2, 0), (0.2, 0.2), (0, 0.2)),))),
            "240 of 3000 pixels of the zone 'body' are outside the area that the model inspects",
        ),
    ],
)
def test_plans_that_do_not_fit_the_model(model, message):
    with pytest.raises(ConfigError, match=message):
        PlanJudge(make_plan({"body": BODY}), model)


def test_rules_of_the_part_name_classes_of_the_model():
    rules = [{"defect": "scrach", "more_than": 0, "counted_from": "0.1 mm", "then": "reject"}]
    with pytest.raises(ConfigError, match=r"part\.rules\.0 names the defect 'scrach'"):
        PlanJudge(make_plan({"body": BODY}, part={"rules": rules}), make_model())


def test_a_defect_that_may_be_outside_an_ignored_zone_is_uncertain_for_the_part():
    rules = [{"more_than": 0, "counted_from": "0.1 mm", "then": "reject"}]
    model, plan = make_model(), make_plan(ZONES, part={"rules": rules})
    scores = scores_of((84, 30, 10, 9))
    assert judged(predict(scores, model), model, plan).label == "good"
    scores[32, 60:84] = 0.1
    assert judged(predict(scores, model), model, plan).label == "review"


@pytest.mark.parametrize("gap", [5, 60])
def test_distances_with_unknown_errors_lead_to_review(gap):
    zones = {
        "all": rectangle(0, 0, 100, 60, rules=[{"closer_than": "2 mm", "then": "reject"}, {"then": "accept"}])
    }
    assert (
        verdict((10, 10, 8, 2), (18 + gap, 10, 8, 2), zones=zones, model=make_model(errors=None))[0]
        == "review"
    )


def test_a_share_of_a_zone_in_perspective_is_one_of_its_true_area():
    """The lower part of the photograph shows less: a defect of an eighth of its zone is that everywhere."""
    half = float(np.hypot(WIDTH, HEIGHT) / 2)
    perspective = {"matrix": (half, 0, 0, 0, half, 0, 0, 0.25, 1)}
    for top in (0, 20, 39):
        share = {"total_larger_than": "10 %", "then": "reject"}
        zones = {"body": rectangle(10, top, 80, 21, rules=[{"longer_than": "1 px", "then": "note"}, share])}
        photograph = {"width": WIDTH, "height": HEIGHT, "perspective": perspective}
        plan = make_plan(zones, photograph=photograph)
        judgement = judged(predict(scores_of((12, top + 1, 40, 5)), make_model()), plan=plan)
        [finding] = [one for one in judgement.findings if one.unit == "%"]
        assert finding.measured.value == pytest.approx(100 * 40 * 5 / (80 * 21), abs=3)


def test_a_zone_without_a_pixel_is_rejected():
    zones = {"body": rectangle(10.6, 10.6, 0.2, 0.2)}
    with pytest.raises(ConfigError, match="'body' contains no pixel"):
        PlanJudge(make_plan(zones), make_model())
    hidden = {"body": BODY | {"without": ["all"]}, "all": rectangle(0, 0, WIDTH, HEIGHT)}
    with pytest.raises(ConfigError, match="'body' contains no pixel"):
        PlanJudge(make_plan(hidden), make_model())


def test_a_stricter_rule_never_gives_a_milder_verdict():
    """Random defects: adding a rule to a plan does not lower the severity."""
    random, order = np.random.default_rng(0), ["accept", "note", "review", "reject", "stop"]
    model = make_model()
    extra = {"longer_than": "1 mm", "then": "stop"}
    strict = make_plan(ZONES | {"body": BODY | {"rules": [LONG, extra]}})
    for _ in range(40):
        boxes = [tuple(random.integers((0, 0, 1, 1), (80, 50, 20, 10))) for _ in range(3)]
        prediction = predict(scores_of(*boxes), model)
        mild, hard = judged(prediction, model), judged(prediction, model, strict)
        assert order.index(hard.severity) >= order.index(mild.severity)
