"""The images of a run, checked before anything is written."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from datasets.check_cache import CheckCache
from datasets.checking import check_dataset, describe_problems, describe_risks
from datasets.leaks import raise_if_unusable, warn_of_near_leaks
from datasets.loading import load_dataset
from datasets.name_lists import read_name_list
from datasets.reading import read
from datasets.sample import Dataset, LazyRecords, Problem, Record, Sample, Split, labels_of, unlocalized
from datasets.splitting import SPLITS
from segdec.config import ModelConfig, config_error
from segdec.errors import DatasetError
from segdec.runtime.cli import progress_bar
from training.config import DataConfig, ExperimentConfig
from training.data.array_cache import ArrayCache
from training.data.example_source import ExampleSource, build_source, prepare_sample, prepared_shape
from training.data.inspected_records import clip_mask, relabel_uninspected
from training.data.targets import dilate_sample


@dataclass(frozen=True)
class RunData:
    """What a run trains and validates on.

    Attributes:
        dataset: The records of all splits, checked, with shapes and digests.
        model: The model that these classes and the experiment ask for.
        examples: Those of the training split.
        cache: Keeps them, and whatever else is read again and again.
        shape: Their common shape (h, w, C).
        fingerprint: SHA-256 over names, splits, labels, annotations and file contents of all these records.
        known: What was found of their files.
        left_out: What cannot be used, where the experiment goes on without it.
    """

    dataset: Dataset
    model: ModelConfig
    examples: ExampleSource
    cache: ArrayCache
    shape: tuple[int, ...]
    fingerprint: str
    known: CheckCache
    left_out: tuple[Problem, ...] = ()


def load_run_data(config: ExperimentConfig) -> RunData:
    """Checks every photograph of every split, test included: each is read once.

    Those are not read of which an index tells, or which have not changed since a former start has read them.

    Raises:
        SegdecError: If photographs cannot be used or lie in two splits (all are listed), do not fit the
            configuration, or cannot be learnt from.
    """
    dataset = list_dataset(config.data, config.data.splits)
    model = build_model_config(config, dataset.classes)
    known = open_check_cache(config, model.network.input_channels)
    checked = check_files(config, dataset, model.network.input_channels, known)
    checked = replace(
        checked, records=relabel_uninspected(checked.records, record_reader(config), config.input)
    )
    for split in ("train", "val"):
        check_split(split, checked.of_split(split), synthetic=config.augmentation.synthetic > 0)
    check_learnable(checked.of_split("train"), dataset.classes)
    if model.network.mask_classes:
        check_localized(checked.of_split("train"), dataset.classes)
    cache = build_array_cache(config.data)
    examples = build_source(checked.of_split("train"), training_reader(config), model, cache)
    return RunData(
        replace(checked, problems=()),
        model,
        examples,
        cache,
        examples.common_shape(),
        fingerprint(checked.records),
        known,
        checked.problems,
    )


def record_reader(config: ExperimentConfig) -> Callable[[Record], Sample]:
    """Reads a record as `datasets.reading.read`, its mask cut to what the experiment inspects."""
    read_whole = partial(read, white_level=config.input.white_level, max_pixels=config.data.max_pixels)
    return lambda record: clip_mask(read_whole(record), config.input)


def training_reader(config: ExperimentConfig) -> Callable[[Record], Sample]:
    """Reads a record as `record_reader` does, its mask grown where it grows in the photograph's pixels."""
    read_record = record_reader(config)
    return lambda record: dilate_sample(read_record(record), config.target)


def cached_reader(read: Callable[[Record], Sample], cache: ArrayCache) -> Callable[[Record], Sample]:
    """Returns what reads as `read` does, and decodes no photograph again that the cache has kept."""

    def read_once(record: Record) -> Sample:
        kept = cache.get(record.name)
        if kept is not None:
            masks = kept.get("mask"), kept.get("classes")
            return Sample(record.name, kept["image"], masks[0], record.label, record.supervision, masks[1])
        sample = read(record)
        held = {"image": sample.image, "mask": sample.mask, "classes": sample.classes}
        cache.put(record.name, {name: one for name, one in held.items() if one is not None})
        return sample

    return read_once


def list_dataset(config: DataConfig, splits: Path | None) -> Dataset:
    """Lists the data set as the experiment asks for it, unchecked, with the splits of the file `splits`.

    Raises:
        SegdecError: If it cannot be listed, or one of its text files cannot be used.
    """
    return load_dataset(
        config.layout,
        config.root,
        splits,
        supervision=config.supervision,
        merge_defects=config.merge_defects,
        mask_threshold=config.mask_threshold,
        mask_values=config.mask_values,
        reviewed=config.reviewed,
    )


def list_split_records(
    config: ExperimentConfig, splits: Path, classes: tuple[str, ...], split: Split
) -> Sequence[Record]:
    """Lists the images of a split as a run was started with it, whatever was added since.

    Args:
        config: Where the images lie, and what of them is inspected.
        splits: The run's own split file.
        classes: Those of the run's model.
        split: Whose images.

    Raises:
        SegdecError: If one of them cannot be used any more, or there is none.
    """
    data = config.data
    dataset = list_dataset(data, splits)
    started_with = {line.name for line in read_name_list(splits, SPLITS, "split") if line.word == split}
    if gone := [problem for problem in dataset.problems if problem.name in started_with]:
        raise DatasetError(describe_problems(gone))
    if dataset.classes != classes:
        raise DatasetError(
            f"'{data.root}' holds the classes {', '.join(dataset.classes)}. "
            f"Expected those the model was trained on: {', '.join(classes)}."
        )
    if not dataset.of_split(split):
        raise DatasetError(
            f"The split '{split}' of '{data.root}' holds no image. Evaluate another --split, or train "
            "with a splits file that has one."
        )
    return relabel_uninspected(dataset.of_split(split), record_reader(config), config.input)


def check_files(config: ExperimentConfig, dataset: Dataset, channels: int, known: CheckCache) -> Dataset:
    """Checks the records that have a split; problems are left if the experiment goes on without them.

    Near twins in different splits cost a warning.

    Raises:
        SegdecError: If there are problems otherwise, or pictures lie in two splits; all are listed.
    """

    def examine(sample: Sample) -> None:
        prepare_sample(sample, config.input, channels)

    checked = check_dataset(
        dataset.assigned(),
        white_level=config.input.white_level,
        max_pixels=config.data.max_pixels,
        progress=lambda records: progress_bar(records, desc="checking", unit="image", leave=False),
        examine=examine,
        trusted=lambda shape: prepared_shape(shape, config.input, channels) is not None,
        known=known,
    )
    for risk in describe_risks(checked):
        print(f"warning: {risk}", file=sys.stderr)
    warn_of_near_leaks(dataset, checked.photographs, config.data.allowed_leaks)
    raise_if_unusable(
        dataset, checked, allowed_leaks=config.data.allowed_leaks, skip_broken=config.data.skip_broken
    )
    return checked.dataset


def open_check_cache(config: ExperimentConfig, channels: int) -> CheckCache:
    """Returns what former starts have found of the files, as far as it is true of this experiment."""
    # What `prepare_sample` refuses depends on no other setting of the input.
    settings: list[object] = [config.input.white_level, config.input.convert_color, channels]
    if config.input.is_partial:
        area = {"regions_of_interest", "ignored_areas", "interest_mask"}
        settings.append(config.input.model_dump(mode="json", include=area))
    root, trust = str(config.data.root), not config.data.recheck
    return CheckCache(config.checked_folder, root, repr(settings), trust=trust)


def build_array_cache(config: DataConfig) -> ArrayCache:
    """Builds the cache that `config` asks for.

    Raises:
        ConfigError: If its folder cannot be used.
    """
    return ArrayCache(config.cache_mb, config.cache_folder, config.disk_cache_mb)


def build_model_config(config: ExperimentConfig, classes: tuple[str, ...]) -> ModelConfig:
    """Builds the model of an experiment for these classes; their number need not be configured.

    Raises:
        ConfigError: If it is configured and does not fit.
    """
    network = config.network
    if "num_classes" not in network.model_fields_set:
        network = network.model_copy(update={"num_classes": len(classes)})
    try:
        return ModelConfig(network=network, input=config.input, classes=classes)
    except ValidationError as error:
        raise config_error(error, ModelConfig) from error


def check_split(split: str, records: Sequence[Record], *, synthetic: bool = False) -> None:
    """Refuses a split without good images, or without defective ones unless defects are `synthetic`.

    Raises:
        DatasetError: If one kind is missing.
    """
    defective = int(np.count_nonzero(labels_of(records)))
    good = len(records) - defective
    if good and (defective or synthetic):
        return
    advice = "name them in a splits file and pass --data.splits FILE, or add images."
    if good:
        advice += (
            " To learn from good images alone, set augmentation.synthetic above 0: defects are then made up."
        )
    raise DatasetError(
        f"The split '{split}' holds {good} good and {defective} defective images. Expected some of "
        f"{'both' if not synthetic else 'the good ones'}, to learn from and to choose thresholds by: {advice}"
    )


def check_learnable(records: Sequence[Record], classes: tuple[str, ...]) -> None:
    """Refuses several classes of defects none of which is shown in training: nothing tells them apart.

    Raises:
        DatasetError: If it is so.
    """
    if len(classes) > 2 and not labels_of(records).any():
        raise DatasetError(
            f"The training split holds good images alone, and the data set {len(classes) - 1} classes of "
            f"defects ({', '.join(classes[1:])}), which made-up defects do not tell apart. Expected one: "
            "set data.merge_defects = true, or put defective images of each class into the training split."
        )


def check_localized(records: Sequence[Record], classes: tuple[str, ...]) -> None:
    """Refuses a class of defects of which training shows no place: its mask would stay empty.

    Photographs of which the class alone is known teach the decision, as long as there are others.

    Raises:
        DatasetError: If there is one.
    """
    labels = labels_of(records)
    placed = set(labels[~unlocalized(records)].tolist())
    if any(record.mask_values is not None for record in records):  # which ones a mask holds, its pixels tell
        return
    unplaced = [name for number, name in enumerate(classes) if number in set(labels.tolist()) - placed]
    if unplaced:
        raise DatasetError(
            f"network.mask_classes with label-only annotations: of the class '{unplaced[0]}' no training "
            "photograph says where its defects are, so that no region could get it. Expected masks or boxes "
            "of some: draw them, or set network.mask_classes to false."
        )


def fingerprint(records: Sequence[Record]) -> str:
    """Returns the SHA-256 over names, splits, labels, annotations and file contents of checked records."""
    digest = hashlib.sha256()
    for identity in _identities(records):
        digest.update(identity)
    return digest.hexdigest()


def _identities(records: Sequence[Record]) -> Iterator[bytes]:
    """In the order of the names."""
    if isinstance(records, LazyRecords):
        return records.identities()
    return (record.identity() for record in sorted(records, key=lambda record: record.name))
