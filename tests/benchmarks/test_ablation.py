"""The tables of variants hold valid settings, and figures land in the right line."""

import json
from pathlib import Path

import pytest

from benchmarks.ablation import Variant, describe, read_variants, split_arguments
from segdec.errors import ConfigError
from training.experiment_file import load_experiment

ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "benchmarks" / "ablations").glob("*.toml"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_variant_is_an_experiment(table):
    variants = read_variants(table)
    experiment = ROOT / "training" / "experiments" / f"{table.stem}_compact.toml"
    plain = load_experiment(experiment, list(variants[0].common))
    for variant in variants:
        changed = load_experiment(experiment, [*variant.common, *variant.flags]) != plain
        assert changed == bool(variant.flags), variant
    flags = {variant.flags for variant in variants}
    assert len({variant.run_name(0) for variant in variants}) == len(flags) > 1


def test_means_and_deviations_stand_in_their_line(tmp_path):
    variants = [Variant("dilation", "3 px", ()), Variant("dilation", "none", ("--target.dilation-px", "1"))]
    for variant, precisions in zip(variants, ((0.9, 0.7), (0.5, None)), strict=True):
        for seed, precision in enumerate(precisions):
            folder = tmp_path / variant.run_name(seed)
            folder.mkdir()
            figures = {"average_precision": precision, "false_positives": 1, "false_negatives": 2 * seed}
            rest = {"fp_at_full_recall": 4, "pixel_f1": 0.25, "pixel_iou": 0.125}
            (folder / "metrics.json").write_text(json.dumps({**figures, **rest}))
            (folder / "minutes.json").write_text("2.5")
    assert describe(variants[:1], tmp_path, (1,)).endswith("| 3 px | 0.700 | 3 | 4 | 0.250 | 0.125 | 2.5 |")
    heading, _, first, second = describe(variants, tmp_path, (0, 1)).strip().splitlines()
    assert heading == "| dilation | AP | errors | FP at FN = 0 | pixel F1 | pixel IoU | minutes |"
    deviations = "4.0 ± 0.0 | 0.250 ± 0.000 | 0.125 ± 0.000 | 2.5 ± 0.0 |"
    assert first == f"| 3 px | 0.800 ± 0.141 | 2.0 ± 1.4 | {deviations}"
    assert second == f"| none | – | 2.0 ± 1.4 | {deviations}"


def test_flags_of_the_experiment_stand_behind_two_hyphens():
    own, flags = split_arguments(["a.toml", "b.toml", "--seeds", "1", "--", "--data.root", "toys"])
    assert (own, flags) == (["a.toml", "b.toml", "--seeds", "1"], ["--data.root", "toys"])
    assert split_arguments(["a.toml"]) == (["a.toml"], [])


def test_flags_of_all_are_common_to_the_variants(tmp_path):
    table = tmp_path / "table.toml"
    table.write_text("all = '--batch-size 2'\n[batch]\nplain = ''\nlarge = '--batch-size 8'\n")
    plain, large = read_variants(table)
    assert (plain.common, plain.flags) == (("--batch-size", "2"), ())
    assert (large.common, large.flags) == (("--batch-size", "2"), ("--batch-size", "8"))


@pytest.mark.parametrize("content", ["[dilation", "dilation = 3", "[dilation]\nnone = 1"])
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    (tmp_path / "table.toml").write_text(content)
    with pytest.raises(ConfigError, match="is no table of variants"):
        read_variants(tmp_path / "table.toml")
