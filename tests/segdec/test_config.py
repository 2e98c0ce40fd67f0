import pytest
from pydantic import BaseModel, ValidationError

from segdec.config import MAX_MEMORY, InputConfig, ModelConfig, NetworkConfig, Thresholds, config_error

GREY = NetworkConfig(preset="compact")


def message(model: type[BaseModel], values: dict[str, object]) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return str(config_error(caught.value, model))


def test_preset_fills_missing_fields() -> None:
    config = NetworkConfig(preset="comind2021", feature_width=64)
    assert config.normalization == "feature"
    assert config.segmentation_widths == ((32,), (64, 64, 64), (64, 64, 64, 64))
    assert config.feature_width == 64


def test_unknown_preset_names_the_known_ones() -> None:
    text = message(NetworkConfig, {"preset": "tiny"})
    assert "unknown preset 'tiny'; known: seed, jim2019, comind2021, compact" in text


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("feature_widht", "feature_width"), ("normalisation", "normalization"), ("clases", "num_classes")],
)
def test_unknown_key_names_the_nearest_one(key: str, nearest: str) -> None:
    assert message(NetworkConfig, {key: 1}) == f"{key}: unknown key. Did you mean '{nearest}'?"


def test_error_shows_the_wrong_value() -> None:
    text = message(NetworkConfig, {"feature_width": -4})
    assert text.startswith("feature_width: ")
    assert "(got -4)" in text


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"preset": "compact", "heads": 0, "memory": 10}, "memory=10 needs an encoder"),
        ({"preset": "mobilenet", "memory": 10}, "memory=10 with heads=1; expected heads=0 for"),
        ({"preset": "mobilenet", "heads": 0}, "heads=0 without memory"),
        ({"preset": "compact", "linear_mask": True}, "linear_mask needs an encoder"),
        (
            {"preset": "mobilenet", "linear_mask": True, "mask_classes": True, "num_classes": 3},
            "one mask for all classes",
        ),
        (
            {"preset": "mobilenet", "heads": 0, "memory": 9, "num_classes": 3},
            "heads=0 with num_classes=3; exp",
        ),
        ({"preset": "mobilenet", "heads": 0, "memory": 9, "mask_stride": 4}, "mask_stride=4; expected the"),
        ({"preset": "mobilenet", "memory": 8001}, "memory: Input should be less than or equal to 8000"),
    ],
)
def test_a_memory_has_one_mask_from_an_encoder(values: dict[str, object], found: str) -> None:
    assert found in message(NetworkConfig, values)


@pytest.mark.parametrize("values", [{}, {"heads": 2}, {"heads": 0, "memory": 9}])
def test_the_pooled_score_is_combined_with_heads_and_memory(values: dict[str, object]) -> None:
    text = message(NetworkConfig, {"preset": "mobilenet", **values, "pooled_score": True})
    assert "expected two heads or more and a memory" in text


@pytest.mark.parametrize(
    "values", [{}, {"preset": "mobilenet"}, {"preset": "mobilenet", "heads": 0, "memory": 9}]
)
def test_pooled_classes_are_compared_on_the_folds_of_heads(values: dict[str, object]) -> None:
    text = message(NetworkConfig, {**values, "pooled_classes": True})
    assert f"pooled_classes with heads={values.get('heads', 1)}; expected two heads or more" in text


def test_features_are_pooled_for_several_classes_of_defects_only() -> None:
    fields = {"preset": "mobilenet", "heads": 3, "pooled_classes": True}
    found = [NetworkConfig.model_validate({**fields, "num_classes": n}).pools_classes for n in (2, 3)]
    assert found == [False, True]


@pytest.mark.parametrize(
    ("values", "side"),
    [
        # A cell 1, 15×15: 15; pooling and four 5×5: 2 · 15 + 16 = 46, three: 2 · 46 + 12 = 104, two: 216.
        ({}, 216),
        ({"preset": "comind2021"}, 212),  # one 5×5 less
        ({"mask_stride": 4}, 232),  # a neighbouring cell on each side: 17, 50, 112, 232
        ({"mask_stride": 1}, 248),  # two of them: 19, 54, 120, 248
        ({"preset": "compact"}, 168),  # 9×9: 9, 34, 80, 168
    ],
)
def test_receptive_field_by_hand(values: dict[str, object], side: int) -> None:
    assert NetworkConfig.model_validate(values).receptive_field == side


def test_a_memory_has_a_limit() -> None:
    text = message(NetworkConfig, {"memory": MAX_MEMORY + 1})
    assert text == f"memory: Input should be less than or equal to {MAX_MEMORY} (got {MAX_MEMORY + 1})"


def test_mask_stride_is_one_of_four() -> None:
    assert "expected one of 1, 2, 4, 8" in message(NetworkConfig, {"mask_stride": 3})


def test_resize_needs_both_sides() -> None:
    assert "needs both height and width" in message(InputConfig, {"policy": "resize", "height": 64})


def test_classes_must_match_the_network() -> None:
    text = message(ModelConfig, {"network": GREY, "input": InputConfig(), "classes": ("good", "a", "b")})
    assert text.endswith("expected the same number: set network.num_classes to 3")


def test_labels_are_the_classes_and_review_where_there_is_one(tiny_config: ModelConfig) -> None:
    assert tiny_config.labels == ("good", "defect")
    careful = tiny_config.model_copy(update={"thresholds": Thresholds(score=0.5, review=0.1)})
    assert careful.labels == ("good", "defect", "review")


@pytest.mark.parametrize("name", ["review", "unsure", "not_inspected", "NOT_INSPECTED"])
def test_labels_that_are_not_classes_are_refused_as_classes(tiny_config: ModelConfig, name: str) -> None:
    values = tiny_config.model_dump() | {"classes": ("good", name)}
    with pytest.raises(ValidationError, match=f"'{name}', which is reserved"):
        ModelConfig.model_validate(values)
