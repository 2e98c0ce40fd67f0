import cv2
import numpy as np
import pytest

from api.labelling.clicks import Click
from benchmarks.clicks import (
    MARKER,
    MAX_CLICKS,
    ClickSimulation,
    choose_click,
    describe_large_photograph,
    draw_large_photograph,
    main,
    prepare_grabcut,
    simulate,
    summarize,
)
from datasets.layouts.toy import write_toy
from tests.api.labelling.sam_graphs import write_sam


def test_clicks_are_in_the_middle_of_the_largest_wrong_region():
    truth = np.zeros((40, 60), bool)
    truth[10:21, 10:21] = True
    truth[30:33, 40:43] = True
    mask = np.zeros_like(truth)
    assert choose_click(truth, mask) == Click(15, 15, True)
    mask[10:21, 10:21] = True
    assert choose_click(truth, mask) == Click(41, 31, True)
    mask[0:9, 30:59] = True
    click = choose_click(truth, mask)
    assert (click.y, click.is_defect) == (4, False)
    assert choose_click(truth, truth) is None


def test_a_segmentation_without_errors_needs_one_click():
    truth = np.zeros((20, 20), bool)
    truth[5:9, 5:9] = True
    course = simulate(lambda _: lambda _: truth, np.zeros((20, 20), np.uint8), truth)
    assert course.ious == [1.0] * MAX_CLICKS
    assert course.count_clicks(0.85) == 1
    assert len(course.click_ms) == 1


def test_summary_by_hand():
    simulations = [
        ClickSimulation([0.5, 0.82, 0.9, *[0.9] * 17], [1, 3], 10),
        ClickSimulation([0.1] * MAX_CLICKS, [5], 30),
    ]
    figures = summarize(simulations)
    assert figures[:8] == pytest.approx([11, 11.5, 0.5, 0.5, 0.3, 0.5, 0.5, 3])
    assert figures[9] == 20


def test_grabcut_finds_a_contrasting_disc_at_the_size_of_the_photograph():
    image = np.full((300, 400), 200, np.uint8)
    cv2.circle(image, (100, 100), 40, 20, -1)
    image = cv2.add(image, np.random.default_rng(0).integers(0, 9, image.shape, np.uint8))
    mask = prepare_grabcut(image)([Click(100, 100, True)])
    truth = image < 100
    assert np.count_nonzero(mask & truth) / np.count_nonzero(mask | truth) > 0.9


@pytest.mark.slow
def test_the_table_with_sam_is_written_between_the_markers(tmp_path, capsys):
    write_toy(tmp_path / "toy", 18)
    files, page = write_sam(tmp_path / "sam"), tmp_path / "page.md"
    page.write_text(f"before\n\n{MARKER}\n\n{MARKER}\n\nafter\n")
    main([str(tmp_path), "--sets", "toy", "--photographs", "1", "--sam", str(files), "--write", str(page)])
    text, printed = page.read_text(), capsys.readouterr().out
    assert text.startswith("before") and text.endswith("after\n")
    assert "| toy (1) | GrabCut alone |" in text and "| mean | clicks |" in printed
    rows = [[cell.strip() for cell in row.split("|")] for row in printed.splitlines()]
    methods = {row[2]: row[3:] for row in rows if row[1:2] == ["toy (1)"]}
    assert list(methods) == ["GrabCut alone", "clicks", "SAM 2.1"]
    assert methods["SAM 2.1"][4] != methods["clicks"][4]  # IoU after a click


def test_files_of_sam_that_are_missing_are_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--sets", "toy", "--sam", str(tmp_path / "none")])
    assert "*encoder.onnx: none" in capsys.readouterr().err


def test_the_large_photograph_has_the_size_asked_for_and_two_defects():
    image, masks = draw_large_photograph(0.75)
    assert image.shape == (750, 1000, 3)
    assert np.count_nonzero(masks["small"]) < np.count_nonzero(masks["large"]) / 10
    assert not (masks["small"] & masks["large"]).any()
    assert set(np.unique(image[masks["small"] | masks["large"]])) == {60}
    text = describe_large_photograph(0.75)
    assert "0.75 megapixels: the first click on a small defect" in text
    assert text.endswith("The defects are 40 and 375 px long.")
