import re
from pathlib import Path

from tests.training.reporting.test_report import Page
from training.__main__ import main
from training.metrics.aggregation import aggregate_runs
from training.reporting.aggregate_report import list_mistakes, write_aggregate_report


def write(tmp_path, runs):
    path = tmp_path / "out" / "report.html"
    path.parent.mkdir()
    write_aggregate_report(path, aggregate_runs(runs))
    return path.read_text(encoding="utf-8")


def test_folds_are_shown_singly_and_pooled(make_fold, tmp_path):
    first = make_fold("runs/a <1>", "a", (0.1, 0.4, 0.2, 0.9), 0.3)
    second = make_fold("runs/b", "b", (0.3, 0.8, 0.6, 0.5), 0.7)
    (first / "report.html").write_text("own")
    page = write(tmp_path, [first, second])
    parsed = Page(page)
    assert "1 of 8 images is labelled wrong: 1 missed defect." in page
    lines = [re.findall(r"<td[^>]*>([^<]*)<", line) for line in page.split("<tr>") if "<th>" in line]
    cells = {line[0]: line for line in lines if line}
    # Fold, seed, threshold, AP, AUROC, FN, FP, FP at FN = 0, …
    assert ["0", "1", "0.300", "1.000", "1.000", "0", "0", "0"] in [line[:8] for line in lines]
    assert ["1", "1", "0.700", "0.833", "0.750", "1", "0", "1"] in [line[:8] for line in lines]
    assert "0.887" in cells  # the pool: (1 + 1 + 3/4 + 4/5) / 4, a tie rounded down
    assert page.count("<svg") == 4
    (link,) = (source for source in parsed.sources if not source.startswith("#"))
    assert link == "../runs/a%20%3C1%3E/report.html"  # the other run has no report
    assert not {"script", "img"} & set(parsed.tags)


def test_seeds_are_averaged_and_errors_counted(make_fold, tmp_path):
    runs = [
        make_fold("one", "a", (0.1, 0.9, 0.6, 0.2), seed=1),
        make_fold("two", "a", (0.1, 0.9, 0.3, 0.2), seed=2),
    ]
    mistakes = list_mistakes(aggregate_runs(runs))
    assert [(mistake.name, mistake.wrong) for mistake in mistakes] == [("a/3", 2), ("a/2", 1)]
    assert mistakes[1].predictions == ("defect, 0.600 at 0.500",)
    page = write(tmp_path, runs)
    assert "1 to 2 of 4 images are labelled wrong, 1.5 on average over 2 runs on each." in page
    assert "2 of 2" in page
    assert "1.0 ± 0.0" in page  # missed
    assert page.count("<svg") == 3  # scores of seeds are on no common scale
    Page(page)


def test_review_and_calibration_of_the_pool(make_fold, tmp_path):
    first = make_fold("first", "a", (0.1, 0.9, 0.4), 0.5, review=0.3, defect_rate=0.1)
    second = make_fold("second", "b", (0.1, 0.9, 0.1), 0.5, defect_rate=0.3)
    page = write(tmp_path, [first, second])
    Page(page)
    assert "None of 6 images is labelled wrong; 1 is left for review." in page
    assert '<th class="number">review</th>' in page
    cells = dict(re.findall(r"<tr><th>([^<]*)</th><td[^>]*>([^<]*)<", page))
    assert (cells["For review"], cells["Defective ones for review"]) == ("1", "0")
    # Weights 0.8 / 4 for good ones, 0.1 for defective ones: 0.2 · (3 · 0.1 + 0.4) + 0.1 · (2 · 0.1).
    assert cells["Expected calibration error of the score"] == "0.160"
    assert cells["Brier score of the score"] == "0.040"  # 0.2 · (3 · 0.01 + 0.16) + 0.1 · (2 · 0.01)
    assert "where 20\N{NO-BREAK SPACE}% of the photographs are defective" in page
    assert "Brier score, before calibration" in cells


def test_command_line_writes_it_beside_the_figures(make_fold, tmp_path, monkeypatch, capsys):
    make_fold("first", "a", (0.1, 0.4, 0.2, 0.9))
    second = make_fold("second", "b", (0.3, 0.8, 0.6, 0.5))
    (second / "report.html").write_text("own")
    monkeypatch.chdir(tmp_path)  # runs are named from where the user stands, links lead from the report
    main(["join", "first", "second", "--out", "out"])
    assert "report.html to out" in capsys.readouterr().out
    assert 'href="../second/report.html"' in Path("out/report.html").read_text(encoding="utf-8")
