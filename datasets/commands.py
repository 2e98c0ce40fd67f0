"""The commands of `python -m datasets`; `datasets.__main__` parses their arguments."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from datasets.archives import ArchiveLimits
from datasets.archives import unpack as unpack_archive
from datasets.checked_photograph import CheckedDataset
from datasets.checking import ANY_WHITE_LEVEL, check_dataset, describe_risks
from datasets.contact_sheet import contact_sheet
from datasets.conversion import convert as write_manifest
from datasets.conversion import convertible
from datasets.detection import detect_layout, find_root
from datasets.file_bounds import without_files_outside
from datasets.file_systems import is_url
from datasets.findings import list_findings, write_findings
from datasets.folds import Duplicates, keep_every_share, split_by_share, split_into_folds
from datasets.layouts.toy import write_toy
from datasets.layouts.unlabelled import list_photographs
from datasets.leaks import format_near_leak, near_duplicates, raise_if_unusable, warn_of_near_leaks
from datasets.loading import SHARDS, load_dataset
from datasets.mask_cover import check_mask_cover
from datasets.overview import describe
from datasets.problems import format_problem, raise_if_problems, write_problems
from datasets.reading_options import ReadingOptions
from datasets.sample import Dataset
from datasets.sharding.packing import check_output
from datasets.sharding.packing import pack as write_shards
from datasets.sharding.shard_plan import packable
from datasets.splitting import TEST_FRACTION, has_own_split, without_split, write_splits
from segdec.command_line.service_keys import explain_key_errors, read_key
from segdec.errors import DatasetError
from segdec.images import write_png
from segdec.runtime.cli import import_tensorflow, progress_bar
from segdec.runtime.counts import count_of
from segdec.runtime.files import atomic_folder, write_text_atomic

Item = TypeVar("Item")

AUTO = "auto"
"""Instead of a layout: the one that `detect_layout` returns."""


def toy(options: argparse.Namespace) -> None:
    """Writes the toy set."""
    write_toy(
        options.out,
        options.count,
        size=options.size,
        classes=options.classes,
        seed=options.seed,
        surface=options.surface,
        overwrite=options.overwrite,
        progress=lambda numbers: _progress(numbers, "toy set"),
    )
    print(f"{options.count} images in {options.out}")


def inspect(options: argparse.Namespace) -> None:
    """Prints statistics and draws the contact sheet; then raises DatasetError for problems or leaks."""
    if not options.out.parent.is_dir():
        raise DatasetError(
            f"The folder {options.out.parent} does not exist. Create it, or choose another --out."
        )
    dataset = _load(options, options.splits)
    checked = _check(options, dataset, options.white_level)
    if checked.photographs:
        print(describe(dataset, checked.photographs))
        sheet = contact_sheet(checked.dataset, white_level=options.white_level, max_pixels=options.max_pixels)
        with _writing(f"The contact sheet {options.out}", "--out"):
            write_png(options.out, sheet)
        print(f"\ncontact sheet: {options.out}")
    leaks = warn_of_near_leaks(dataset, checked.photographs, options.allow_leak)
    if options.duplicates is not None:
        with _writing(f"The list {options.duplicates}", "--twins"):
            lines = [f"{format_near_leak(leak)}\n" for leak in leaks]
            write_text_atomic(options.duplicates, "".join(lines))
        print(f"near duplicates in different splits: {options.duplicates}")
    raise_if_unusable(dataset, checked, allowed_leaks=options.allow_leak)


def split(options: argparse.Namespace) -> None:
    """Writes a split file, or one split file for each fold."""
    _check_new(options.out)
    if options.folds is not None and options.test is not None:
        raise DatasetError(
            "--folds and --test exclude each other: each fold is tested once. Give one of them."
        )
    checked = _check(options, _load(options, None), ANY_WHITE_LEVEL)
    if not options.skip_broken:
        raise_if_problems(checked.dataset)
    dataset, photographs = _without_broken(checked), checked.photographs
    test = TEST_FRACTION if options.test is None else options.test
    shares = [1] * options.folds if options.folds else [1 - options.val - test, options.val, test]
    near = _near_duplicates(checked, shares, options.seed) if options.group_duplicates else ()
    how = f"python -m datasets split {options.layout}: groups and equal photographs together, "
    how += "near duplicates together, " if options.group_duplicates else ""
    val, seed = options.val, options.seed
    with _writing(str(options.out), "path"):
        if options.folds is None:
            how += f"val {val:g}, test {test:g}, seed {seed}"
            assigned = split_by_share(
                dataset, photographs, val=val, test=test, seed=seed, duplicates=near
            ).items
            write_splits(options.out, assigned, comment=how)
        else:
            how += f"fold {{}} of {options.folds}, val {val:g} of the others, seed {seed}"
            folds = split_into_folds(
                dataset, photographs, folds=options.folds, val=val, seed=seed, duplicates=near
            )
            with atomic_folder(options.out) as folder:
                for number, fold in enumerate(folds):
                    write_splits(folder / f"fold_{number}.txt", fold.items, comment=how.format(number))
    print(f"{count_of(len(photographs), 'photograph')} split in {options.out}")


def _near_duplicates(checked: CheckedDataset, shares: Sequence[float], seed: int) -> Duplicates:
    """Finds clusters of near duplicates; prints a warning about those that are not kept together."""
    duplicates = near_duplicates(checked.photographs)
    number, clusters = sum(map(len, duplicates)), count_of(len(duplicates), "cluster")
    print(f"{number} photographs have near duplicates, in {clusters}")
    kept, notes = keep_every_share(checked.photographs, duplicates, shares, seed)
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
    return kept


def pack(options: argparse.Namespace) -> None:
    """Writes the data set as shards."""
    import_tensorflow()
    dataset = _load(options, options.splits)
    check_output(dataset, options.out, overwrite=options.overwrite)
    packed = packable(dataset)
    checked = _check(options, packed, ANY_WHITE_LEVEL)
    warn_of_near_leaks(dataset, checked.photographs, options.allow_leak)
    raise_if_unusable(dataset, checked, allowed_leaks=options.allow_leak, skip_broken=options.skip_broken)
    usable = _without_broken(checked)
    with progress_bar(total=len(usable.items), desc="packing", unit="image") as bar:
        index = write_shards(
            usable,
            options.out,
            shard_mb=options.shard_mb,
            overwrite=options.overwrite,
            max_pixels=options.max_pixels,
            advance=bar.update,
        )
    size_mb = sum(shard.bytes for shard in index.shards) / 1e6
    print(
        f"{count_of(len(index.items), 'photograph')} in {count_of(len(index.shards), 'shard')} "
        f"({size_mb:.1f} MB) in {options.out}"
        f"; {len(dataset.items) - len(packed.items)} without a split left out"
    )


def convert(options: argparse.Namespace) -> None:
    """Writes the data set as a folder of the layout `manifest`."""
    _check_new(options.out)
    root = Path(options.root)
    if options.unlabelled:
        dataset = list_photographs(root)
    else:
        bounds = root if options.own_files else None
        loaded = _load(
            options, options.splits, skip_bad_split_file=options.skip_bad_split_file, bounds=bounds
        )
        dataset = _with_own_split(options, loaded)
    if options.own_files:
        dataset = without_files_outside(dataset, root)
    checked = _check(options, convertible(dataset), ANY_WHITE_LEVEL)
    if options.problems is not None:
        with _writing(f"The list {options.problems}", "--problems"):
            write_problems(options.problems, checked.dataset)
    if not options.skip_broken:
        raise_if_problems(checked.dataset)
    dataset = _without_broken(checked)
    if not dataset.items:
        raise DatasetError(f"{options.root} has no photograph that can be used. Repair the problems above.")
    with _writing(str(options.out), "path"):
        write_manifest(
            dataset,
            options.out,
            max_pixels=options.max_pixels,
            progress=lambda items: _progress(items, "writing"),
        )
    print(f"{count_of(len(dataset.items), 'photograph')} in {options.out}")


def push(options: argparse.Namespace) -> None:
    """Sends the data set to a service."""
    from datasets.pushing import push as send
    from segdec.client import Client  # the extra `client`
    from segdec.client.data_sets import DataSetClient

    key = read_key(options.api_key_file)
    loaded = _with_own_split(options, _load(options, None))
    checked = _check(options, loaded, ANY_WHITE_LEVEL)
    if not options.skip_broken:
        raise_if_problems(checked.dataset)
    dataset = _without_broken(checked)
    with (
        explain_key_errors(options.url, options.api_key_file, key),
        Client(options.url, api_key=key) as client,
    ):
        result = send(
            dataset,
            DataSetClient.open(client, options.data_set),
            max_pixels=options.max_pixels,
            progress=lambda items: _progress(items, "sending"),
        )
    for problem in result.problems:
        print(f"rejected: {format_problem(problem)}", file=sys.stderr)
    counts = result.counts
    print(
        f"data set '{options.data_set}' of {options.url}: {count_of(counts['sent'], 'photograph')} sent, "
        f"{counts['present']} were there; {counts['labelled']} labelled, {counts['kept']} keep another "
        f"label; {counts['removed']} were removed there and stay so"
    )
    if counts["split"] or counts["other_split"]:
        print(f"{counts['split']} got a split, {counts['other_split']} keep another split")
    if result.problems:
        raise DatasetError(
            f"The service rejected {count_of(len(result.problems), 'photograph')}; see above. Repair them "
            "and push again: only what is missing is sent."
        )


def findings(options: argparse.Namespace) -> None:
    """Writes what is unusual about single photographs."""
    checked = _check(options, _load(options, None), ANY_WHITE_LEVEL)
    listed = list_findings(checked)
    with _writing(f"The list {options.out}", "path"):
        write_findings(options.out, listed)
    print(f"{len(listed)} findings in {options.out}")


def unpack(options: argparse.Namespace) -> None:
    """Unpacks a zip archive."""
    _check_new(options.out)
    limits = ArchiveLimits(options.max_files, round(options.max_gb * 1e9))
    count = 0

    def counted(paths: Sequence[PurePosixPath]) -> Iterable[PurePosixPath]:
        nonlocal count
        count = len(paths)
        return _progress(paths, "unpacking", unit="file")

    with _writing(str(options.out), "path"):
        notes = unpack_archive(options.archive, options.out, limits, progress=counted)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{count_of(count, 'file')} in {options.out}")


def _with_own_split(options: argparse.Namespace, dataset: Dataset) -> Dataset:
    """Removes the default split: it changes with the photographs, and training makes a better one."""
    own = options.splits is not None or options.layout == SHARDS or has_own_split(dataset, Path(options.root))
    return dataset if own else without_split(dataset)


def _load(
    options: argparse.Namespace,
    splits: Path | None,
    *,
    skip_bad_split_file: bool = False,
    bounds: Path | None = None,
) -> Dataset:
    if options.layout == AUTO:
        if not is_url(options.root):
            options.root = find_root(Path(options.root))
        options.layout = SHARDS if is_url(str(options.root)) else detect_layout(options.root)
        print(f"layout: {options.layout} ({options.root})")
    if options.layout == SHARDS:
        import_tensorflow()
    return load_dataset(
        options.layout,
        options.root,
        splits,
        ReadingOptions.of(options),
        skip_bad_split_file=skip_bad_split_file,
        bounds=bounds,
    )


def _check(options: argparse.Namespace, dataset: Dataset, white_level: int | None) -> CheckedDataset:
    checked = check_dataset(
        dataset,
        white_level=white_level,
        max_pixels=options.max_pixels,
        strict=options.strict,
        progress=lambda items: _progress(items, "reading"),
    )
    cover = check_mask_cover(checked, decided=options.invert_masks is not None)
    for note in checked.dataset.notes:
        print(f"note: {note}", file=sys.stderr)
    for risk in [*cover, *describe_risks(checked)]:
        print(f"warning: {risk}", file=sys.stderr)
    return checked


def _check_new(out: Path) -> None:
    if out.exists():
        raise DatasetError(f"{out} exists. Choose another path, or remove it.")


def _without_broken(checked: CheckedDataset) -> Dataset:
    """Lists the problems on stderr and returns the data set without them."""
    for problem in checked.dataset.problems:
        print(f"left out: {format_problem(problem)}", file=sys.stderr)
    return replace(checked.dataset, problems=())


@contextmanager
def _writing(what: str, choice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DatasetError(
            f"{what} cannot be written ({error.strerror}). Choose another {choice}."
        ) from error


def _progress(items: Iterable[Item], what: str, unit: str = "image") -> Iterable[Item]:
    bar: Iterable[Item] = progress_bar(items, desc=what, unit=unit)
    return bar
