import numpy as np
import pytest

from benchmarks.unlike_training import EXPECTED, alter, load_surface_network, main
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
def test_tables_have_a_row_for_each_kind_and_a_column_for_each_set(data, capsys):
    main([str(data), "--altered", "1"])
    rejected, expected, _ = capsys.readouterr().out.split("\n\n")
    heading, cells = read_table(rejected)
    assert heading == "| rejected, % | grey | red | all | photographs |"
    assert cells["good"][:3] == ["0", "0", "0"]
    for kind in ("lens cap", "overexposed", "grey"):
        assert cells[kind][:3] == ["100", "100", "100"], kind
    assert cells["another product"][:2] == ["100", "100"]
    assert cells["red and blue swapped"][:2] == ["–", "100"]  # a grey photograph stays the same
    heading, cells = read_table(expected)
    assert heading == "| expected reason, % | grey | red | all | photographs |"
    assert cells["lens cap"] == ["100", "100", "100", "10"]
    assert list(cells) == [*EXPECTED, "all"]


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
    main([str(data), "--altered", "1", "--encoder-weights", weights])
    assert "| another product | 100 | 100 |" in capsys.readouterr().out.split("\n\n")[0]
    image = np.zeros((64, 64, 3), np.uint8)
    assert measure_with(load_surface_network(weights), image)["surface"].shape == (96,)


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
