from typing import Any

import pytest

from segdec.command_line.inspectors import choose_mask, served_labels
from segdec.errors import ConfigError
from segdec.schemas import ModelDetail, ThresholdsInUse


def served(name: str, version: str, **manifest: Any) -> ModelDetail:
    return ModelDetail(name=name, version=version, sha256=None, aliases=[], manifest=manifest)


MODELS = [
    served("parts", "1", classes=["good", "spot"]),
    served("parts", "2", classes=["good", "spot"], thresholds={"score": 0.5, "review": 0.1}),
    served("welds", "1", classes=["good", "pore"], thresholds={"score": 0.5, "review": None}),
]


def test_labels_are_those_of_the_models_that_may_answer() -> None:
    assert served_labels(MODELS, "parts") == ("good", "spot", "review")
    assert served_labels(MODELS, "parts", review=False) == ("good", "spot")
    assert served_labels(MODELS, "welds") == ("good", "pore")
    assert served_labels(MODELS, None) == ("good", "spot", "pore", "review")
    with pytest.raises(ConfigError, match=r"The model 'part' is not served. Expected one of: parts, welds\."):
        served_labels(MODELS, "part")


def test_thresholds_in_use_decide_whether_review_is_a_label() -> None:
    in_use = ThresholdsInUse(score=0.5, review=0.1, of_model=False)
    changed = MODELS[2].model_copy(update={"thresholds": in_use})
    assert served_labels([changed], "welds") == ("good", "pore", "review")
    without = in_use.model_copy(update={"review": None})
    assert served_labels([MODELS[1].model_copy(update={"thresholds": without})], "parts") == ("good", "spot")


def test_class_masks_are_requested_only_if_every_model_has_them() -> None:
    one, other = (served("tiles", str(n), network={"mask_classes": n > 1}) for n in (1, 2))
    assert choose_mask([other, *MODELS], "tiles") == "classes"
    assert choose_mask([one, other], "tiles") == "png"
    assert choose_mask(MODELS, "parts") == "png"  # without a mask per class
    with pytest.raises(ConfigError, match=r"The model 'part' is not served"):
        choose_mask(MODELS, "part")
