"""Each setting follows from the facts, and says so."""

from dataclasses import replace

import pytest

from datasets.reading_options import ReadingOptions
from training.experiment_file import load_experiment, save_experiment
from training.fit.dataset_profile import Orientation, ProfileOptions
from training.fit.experiment_choice import DEFAULT_AREA, Resources, choose_experiment

ENCODER, NONE = Resources("imagenet"), Resources(None, "no weights here")


def config(choice):
    return choice.config(dict.fromkeys(choice.shares, 10))


@pytest.mark.parametrize(
    ("labels", "policy", "said"),
    [
        (0, "tile", "would keep fewer than 5 px"),
        (1, "resize", "keeps 2, fewer than 5: such small defects may be"),
    ],
)
def test_tiles_are_for_sets_whose_defects_all_have_a_place(profile_of, labels, policy, said):
    profile = profile_of(height=3000, width=3000, smallest_px=5.0, labels=labels)
    choice = choose_experiment(profile, (12, 5, 5), 100, ENCODER)
    assert config(choice).input.policy == policy
    assert said in choice.reasons["input"]


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [
        (256, 4096, (128, 2048)),
        (4096, 256, (2048, 128)),
        (512, 2048, (176, 704)),  # not thin: the area is that of others
        (100, 4096, (112, 4096)),  # never enlarged; sides are multiples of 16
        (1024, 65536, (128, 8192)),  # the maximum area
        (1024, 262144, (64, 16384)),
    ],
)
def test_thin_photographs_keep_a_short_side(profile_of, height, width, expected):
    profile = profile_of(height=height, width=width, masks=0, labels=25, smallest_px=None, one_size=False)
    choice = choose_experiment(profile, (12, 0, 0), 100, ENCODER, heads=3)
    size = config(choice).input
    assert (size.height, size.width) == expected
    assert ("fewer than 128 px" in choice.reasons["input"]) == (expected != (176, 704))


@pytest.mark.parametrize("area", [DEFAULT_AREA, DEFAULT_AREA // 8], ids=["usual", "little time"])
def test_thin_photographs_are_not_called_small(profile_of, area):
    profile = profile_of(height=256, width=4096, masks=0, labels=25, smallest_px=None, one_size=False)
    choice = choose_experiment(profile, (12, 0, 0), 100, ENCODER, area, heads=3)
    assert config(choice).input.height == 128
    assert choice.reasons["input"].endswith("since the short side would have fewer than 128 px")


@pytest.mark.parametrize("resources", [ENCODER, NONE], ids=["encoder", "none"])
@pytest.mark.parametrize("learnt", [0, 9, 99, 100])
def test_whatever_is_found_gives_an_experiment_that_can_be_run_again(profile_of, resources, learnt, tmp_path):
    chosen = config(choose_experiment(profile_of(), (learnt, 5, 5), 100, resources))
    path = tmp_path / "fit.toml"
    path.write_text(save_experiment(chosen))
    assert load_experiment(path) == chosen


def test_answers_about_labels_are_part_of_the_experiment(profile_of):
    options = ProfileOptions(good_labels=["no burr"], defect_labels=["no solder"])
    data = config(choose_experiment(profile_of(options=options), (9, 5, 5), 100, NONE)).data
    assert (data.good_labels, data.defect_labels) == (("no burr",), ("no solder",))
    assert ReadingOptions.of(data) == ReadingOptions(good_labels=("no burr",), defect_labels=("no solder",))


@pytest.mark.parametrize(
    ("learnt", "word", "synthetic", "transplant"),
    [(1, "few", 0.25, 0.25), (9, "few", 0.25, 0.25), (10, "some", 0.0, 0.0)],
)
def test_few_defects_get_company(profile_of, learnt, word, synthetic, transplant):
    choice = choose_experiment(profile_of(), (learnt, 1, 1), 100, ENCODER)
    augmentation = config(choice).augmentation
    assert (augmentation.synthetic, augmentation.transplant) == (synthetic, transplant)
    assert choice.reasons["regime"].startswith(word)


@pytest.mark.parametrize(
    ("heads", "resources", "memory", "synthetic"),
    [(0, ENCODER, 1000, 0.0), (1, ENCODER, 0, 0.5), (1, NONE, 0, 0.5)],
)
def test_without_a_defect_the_network_remembers_good_surface(profile_of, heads, resources, memory, synthetic):
    profile = profile_of(masks=0, smallest_px=None, one_shape=False, one_size=False)
    choice = choose_experiment(profile, (0, 0, 0), 100, resources, heads=heads)
    chosen = config(choice)
    assert (chosen.network.heads, chosen.network.memory) == (heads, memory)
    assert chosen.augmentation.synthetic == synthetic
    assert chosen.input.policy == ("letterbox" if memory else "resize")
    assert chosen.input.size == ((352, 352) if (heads and resources is ENCODER) else (512, 512))
    assert (not any(chosen.stages.steps.values())) == bool(memory)
    assert choice.reasons["regime"].startswith("good only")


def test_labels_alone_train_the_joint_stage_through_an_open_gate(profile_of):
    choice = choose_experiment(profile_of(masks=0, labels=25, smallest_px=None), (15, 5, 5), 100, ENCODER)
    chosen = config(choice)
    assert chosen.stages.segment.steps == chosen.stages.decision.steps == 0
    assert not chosen.network.gradient_gate
    assert "the size of defects is unknown" in choice.reasons["input"]


@pytest.mark.parametrize(
    ("facts", "height", "width"),
    [
        ({"masks": 0, "labels": 25, "smallest_px": None}, 288, 432),
        ({"smallest_px": 40.0}, 288, 432),
        ({"smallest_px": 14.0}, 352, 528),
        ({"smallest_px": 4.0}, None, None),
    ],
)
def test_heads_on_an_encoder_see_few_pixels_if_defects_stay_visible(profile_of, facts, height, width):
    profile = profile_of(height=400, width=600, **facts)
    choice = choose_experiment(profile, (15, 5, 5), 100, ENCODER)
    chosen = config(choice).input
    assert (chosen.height, chosen.width) == (height, width)
    assert ("overfitted" in choice.reasons["input"]) == (height is not None)
    assert config(choose_experiment(profile, (15, 5, 5), 100, NONE)).input.policy == "native"


def test_the_encoder_is_taken_where_its_weights_are(profile_of):
    with_it, without = (choose_experiment(profile_of(), (15, 5, 5), 100, each) for each in (ENCODER, NONE))
    assert config(with_it).network.preset == "mobilenet"
    assert config(with_it).caches_features
    other = choose_experiment(profile_of(), (15, 5, 5), 100, Resources("imagenet", encoder="resnet50"))
    assert (config(other).network.preset, config(other).network.encoder) == ("mobilenet", "resnet50")
    assert other.reasons["network"].startswith("resnet50: a pretrained, frozen encoder")
    assert config(without).network.preset == "compact"
    assert without.reasons["network"] == "compact, from random weights: no weights here"
    assert config(without).augmentation.contrast > 0


@pytest.mark.parametrize(
    ("facts", "policy", "height", "width"),
    [
        ({}, "resize", 352, 352),
        ({"height": 128, "width": 128}, "resize", 256, 256),
        ({"height": 300, "width": 250}, "native", None, None),
        ({"height": 1260, "width": 500, "one_size": False}, "resize", 768, 304),
        ({"height": 1024, "width": 1024, "smallest_px": 5.0}, "native", None, None),
        ({"height": 1500, "width": 1000, "smallest_px": 10.0}, "resize", 752, 512),
        ({"height": 4000, "width": 3000, "smallest_px": 8.0}, "tile", 512, 512),
        ({"one_size": False, "one_shape": False}, "resize", 352, 352),
    ],
)
def test_the_smallest_defect_keeps_five_pixels(profile_of, facts, policy, height, width):
    profile = profile_of(**facts)
    size = config(choose_experiment(profile, (15, 5, 5), 100, ENCODER)).input
    assert (size.policy, size.height, size.width) == (policy, height, width)
    if size.height is not None and policy != "tile":
        assert profile.smallest_px * size.height / profile.height >= 4.9


def test_without_an_encoder_proportions_are_kept(profile_of):
    chosen = choose_experiment(profile_of(one_size=False, one_shape=False), (15, 5, 5), 100, NONE)
    assert config(chosen).input.policy == "letterbox"


def test_where_time_is_short_the_input_is_smaller_but_keeps_the_smallest_defect(profile_of):
    profile = profile_of(height=1024, width=1024, smallest_px=40.0)
    small = choose_experiment(profile, (15, 5, 5), 100, NONE, 128 * 128)
    assert config(small).input.size == (128, 128)
    assert small.area == 128 * 128
    assert "smaller than usual, since there is little time" in small.reasons["input"]
    fine = profile_of(height=512, width=512, smallest_px=5.0)
    assert config(choose_experiment(fine, (15, 5, 5), 100, NONE, 128 * 128)).input.policy == "native"


def test_synthetic_defects_are_not_on_padding(profile_of):
    choice = choose_experiment(profile_of(one_size=False, one_shape=False), (5, 1, 1), 100, ENCODER)
    assert config(choice).input.policy == "resize"
    assert "must not be placed on padding" in choice.reasons["input"]


@pytest.mark.parametrize(
    ("coloured", "stored", "channels", "converted"),
    [(True, True, 3, False), (False, True, 1, True), (False, False, 1, False)],
)
def test_colours_are_input_where_they_carry_information(profile_of, coloured, stored, channels, converted):
    profile = profile_of(coloured=coloured, stored_in_colour=stored)
    chosen = config(choose_experiment(profile, (15, 5, 5), 100, ENCODER))
    assert (chosen.network.input_channels, chosen.input.convert_color) == (channels, converted)


@pytest.mark.parametrize(
    ("resources", "replicas", "batch_size"),
    [(ENCODER, 1, 8), (ENCODER, 3, 9), (ENCODER, 8, 8), (ENCODER, 16, 16), (NONE, 1, 4), (NONE, 3, 6)],
)
def test_all_gpus_get_equal_parts_of_a_batch(profile_of, resources, replicas, batch_size):
    choice = choose_experiment(profile_of(), (12, 5, 5), 100, replace(resources, replicas=replicas))
    assert config(choice).batch_size == batch_size


@pytest.mark.parametrize("heads", [0, 3])
def test_parts_in_any_orientation_are_rotated_and_remembered_with_more_patches(profile_of, heads):
    defective = (15, 0, 0) if heads else (0, 0, 0)
    usual, chosen = (
        choose_experiment(profile_of(orientation=orientation), defective, 100, ENCODER, heads=heads)
        for orientation in (Orientation.FIXED, Orientation.ARBITRARY)
    )
    assert not config(usual).augmentation.rotate
    assert config(chosen).augmentation.rotate
    assert config(chosen).caches_features
    assert (usual.rotations, chosen.rotations) == (1, 4)
    memories = usual, chosen
    assert [config(each).network.memory for each in memories] == ([500, 1500] if heads else [1000, 6000])
    assert "good photographs resemble rotated copies of others" in chosen.reasons["changes"]


def test_parts_that_are_not_square_are_only_rotated_by_180_degrees(profile_of):
    square, wide = (
        choose_experiment(
            profile_of(height=240, width=width, orientation=Orientation.ARBITRARY),
            (0, 0, 0),
            100,
            ENCODER,
            heads=0,
        )
        for width in (240, 480)
    )
    assert (square.rotations, wide.rotations) == (4, 2)


@pytest.mark.parametrize(
    ("learnt", "annotated", "linear"),
    [(10, {}, True), (9, {}, False), (10, {"masks": 0, "labels": 25}, False)],
)
def test_masks_begin_as_a_linear_map_if_there_are_masks_to_fit_it(profile_of, learnt, annotated, linear):
    choice = choose_experiment(profile_of(**annotated), (learnt, 0, 0), 100, ENCODER, heads=3)
    assert config(choice).network.linear_mask == linear
    assert ("(network.linear_mask)" in choice.reasons["network"]) == linear


@pytest.mark.parametrize(("learnt", "heads", "is_pooled"), [(10, 3, True), (9, 3, False), (10, 1, False)])
def test_the_score_includes_pooled_features_if_there_are_defects_to_fit_them(
    profile_of, learnt, heads, is_pooled
):
    choice = choose_experiment(profile_of(), (learnt, 0, 0), 100, ENCODER, heads=heads)
    assert config(choice).network.pooled_score == is_pooled
    assert ("(network.pooled_score)" in choice.reasons["network"]) == is_pooled


def test_heads_are_trained_on_rotated_copies_of_a_surface_without_a_direction(profile_of):
    profile = profile_of(orientation=Orientation.ISOTROPIC)
    trained = choose_experiment(profile, (15, 0, 0), 100, ENCODER, heads=3)
    assert config(trained).augmentation.rotate
    assert "look alike even when rotated (augmentation.rotate)" in trained.reasons["changes"]
    usual = choose_experiment(profile_of(), (15, 0, 0), 100, ENCODER, heads=3)
    assert config(trained).network.memory == config(usual).network.memory
    remembered = choose_experiment(profile, (0, 0, 0), 100, ENCODER, heads=0)
    assert not config(remembered).augmentation.rotate
    assert remembered.rotations == 1


@pytest.mark.parametrize(
    ("resources", "heads", "classes", "is_pooled"),
    [(ENCODER, 3, 3, True), (ENCODER, 3, 2, False), (ENCODER, 1, 3, False), (NONE, 1, 3, False)],
)
def test_several_classes_of_defects_come_from_pooled_features(
    profile_of, resources, heads, classes, is_pooled
):
    profile = profile_of(classes=("good", "scratch", "spot")[:classes])
    chosen = choose_experiment(profile, (15, 5, 5), 100, resources, heads=heads)
    assert config(chosen).network.pooled_classes == is_pooled
    assert ("(network.pooled_classes)" in chosen.reasons["network"]) == is_pooled
