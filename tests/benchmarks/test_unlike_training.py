import numpy as np
import pytest

from benchmarks.unlike_training import EXPECTED, Counts, alter, load_surface_network, main, split_parts
from datasets.layouts.toy import write_toy
from segdec.encoders import ENCODERS
from segdec.images import encode_png, read_image
from training.photograph_limits import measure_with


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A set of grey toy photographs, and the same brighter and in colour."""
    root = tmp_path_factory.mktemp("data")
    for name in ("grey", "red"):
        write_toy(root / name, 40, size=32)
    for path in [*(root / "red" / "good").iterdir(), *(root / "red" / "defect").iterdir()]:
        grey = read_image(path).pixels.astype(np.float64)
        path.write_bytes(encode_png((grey * [0.9, 0.5, 0.3]).astype(np.uint8)))
    return root


def read_table(text):
    """Heading, and the cells of each row by its first one."""
    heading, _, *rows = text.splitlines()
    cells = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]
    return heading, {first: others for first, *others in cells}


@pytest.mark.slow
def test_tables_have_a_row_for_each_kind_and_a_column_for_each_set_or_size(data, capsys):
    main([str(data), "--altered", "2", "--splits", "2", "--parts", "half", "5"])
    random, by_name, by_size, by_set, expected, _ = capsys.readouterr().out.split("\n\n")
    for text, order in ((random, "random splits"), (by_name, "by name")):
        heading, cells = read_table(text)
        assert heading == f"| usual, {order}: refused (worst); warned, % | half | 5 |"
        assert list(cells) == ["grey", "red", "all"] and cells["grey"][0].startswith("0 (0); ")
    heading, cells = read_table(by_size)
    assert heading == "| refused (refused or warned), % | half | 5 |"
    heading, cells = read_table(by_set)
    assert heading == "| refused (refused or warned), % | grey | red |"
    assert list(cells) == list(EXPECTED)
    for kind in ("lens cap", "overexposed", "grey"):
        assert cells[kind] == ["100", "100"], kind
    assert cells["another product"] == ["0 (100)", "0 (100)"]  # without a memory only a warning
    assert cells["red and blue swapped"] == ["–", "0 (100)"]  # a grey photograph stays the same
    heading, cells = read_table(expected)
    assert heading == "| expected reason, % | grey | red | all | photographs |"
    assert cells["lens cap"][:3] == ["100", "100", "100"]
    assert list(cells) == [*EXPECTED, "all"]


def test_parts_are_split_at_random_and_by_name():
    parts = [f"item{number}" for number in range(12) for _ in range(2)]
    splits = list(split_parts(parts, ["half", "6", "3", "7"], 2))
    assert [(each.size, each.by_name) for each in splits] == [
        (size, by_name) for size in ("half", "3") for by_name in (False, False, True, True)
    ]
    assert all(len(each.held) == 6 and not each.held & each.train for each in splits)
    assert {len(each.train) for each in splits[4:]} == {3} and splits[0].train != splits[1].train
    first, last = splits[-2:]
    assert first.train == {"item0", "item1", "item2"} and "item11" in first.held
    assert last.train == {"item11", "item10", "item9"} and "item0" in last.held


def test_cells_of_the_tables():
    counts = Counts()
    counts.add([True, False, False, False], [False, True, False, False])
    counts.add([False] * 4, [False] * 4)
    assert counts.usual_cell == "12 (25); 12" and counts.altered_cell == "12.5 (25)"
    assert (Counts().usual_cell, Counts().altered_cell) == ("–", "–")
    assert (counts + counts).usual_cell == counts.usual_cell


def test_every_altered_photograph_has_expected_reasons():
    image = np.random.default_rng(0).integers(0, 256, (40, 32, 3), np.uint8)
    assert {kind for kind, _ in alter(image, [image], np.random.default_rng(0), coloured=True)} == set(
        EXPECTED
    )


@pytest.mark.slow
def test_with_an_encoder_the_surface_is_measured(data, capsys, monkeypatch, tmp_path):
    pytest.importorskip("tensorflow")
    from segdec.network.encoder import load_application

    weights = str(tmp_path / "mobilenet.weights.h5")
    load_application(ENCODERS["mobilenet"]).save_weights(weights)
    monkeypatch.setattr("benchmarks.unlike_training.SIDE", 64)
    main([str(data), "--altered", "1", "--splits", "1", "--parts", "half", "--encoder-weights", weights])
    _, cells = read_table(capsys.readouterr().out.split("\n\n")[3])
    assert all(cell in ("100", "0 (100)") for cell in cells["another product"])  # its weights are random
    random = np.random.default_rng(0)
    images = [random.integers(0, brightest, (64, 64, 3), np.uint8) for brightest in (60, 250)]
    infer = load_surface_network(weights, "mobilenet", images)
    dark, bright = (measure_with(infer, image)["surface"] for image in images)
    # The mean of both is 0; with random weights, features are so small that float16 rounds them.
    assert np.linalg.norm(dark + bright) < 0.25 * np.linalg.norm(dark - bright)


def test_alterations_keep_depth_and_channels():
    random = np.random.default_rng(0)
    image = random.integers(0, 256, (40, 32, 3), np.uint8)
    altered = dict(alter(image, [image[:20]], random, coloured=True))
    assert {each.dtype for each in altered.values()} == {np.dtype(np.uint8)}
    assert {
        each.shape for name, each in altered.items() if name not in ("rotated by 90°", "half the resolution")
    } == {image.shape}
    np.testing.assert_array_equal(altered["mirrored"][:, 0], image[:, -1])
    assert altered["12 bits read as 16"].max() == 15
    moved = altered["shifted by half"]
    down = np.array_equal(moved[:20], image[20:])
    assert down or np.array_equal(moved[:, :16], image[:, 16:])
