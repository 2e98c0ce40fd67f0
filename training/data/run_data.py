"""The photographs of a run: listed, checked, searched for leaks and relabelled before the run starts."""

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from datasets.check_cache import CheckCache
from datasets.checked_photograph import CheckedDataset, UnreadPhotographs
from datasets.checking import check_dataset, describe_risks
from datasets.class_indices import read_class_indices
from datasets.folds import Duplicates, assign_folds
from datasets.leaks import near_duplicates_for_split, raise_if_unusable, warn_of_near_leaks
from datasets.loading import load_dataset
from datasets.mask_cover import check_mask_cover
from datasets.problems import describe_problems
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import (
    Dataset,
    DataSetIssue,
    DataSetItem,
    LazyItems,
    Sample,
    Split,
    labels_of,
    unlocalized,
)
from datasets.splitting import SPLIT_WORDS, read_split_lines
from segdec.artifact import TrainingPhotographs
from segdec.config import ModelConfig, NetworkConfig, config_error
from segdec.errors import DatasetError
from segdec.runtime.cli import progress_bar
from segdec.runtime.counts import count_of
from training.config import DataConfig, ExperimentConfig
from training.data.array_cache import ArrayCache
from training.data.example_source import ExampleSource, build_source, prepare_sample, prepared_shape
from training.data.inspected_items import clip_mask, relabel_uninspected
from training.data.targets import dilate_sample

DRY_RUN_PHOTOGRAPHS = 2
"""Photographs of each class of each fold in a dry run: enough of three folds to combine scores."""


@dataclass(frozen=True)
class RunData:
    """The data of a run.

    Attributes:
        dataset: The checked items of all splits.
        examples: Examples of the training split, of `shape` (h, w, C).
        cache: Stores examples and other arrays that are used repeatedly.
        ignored: Problems of photographs that are skipped.
        training_photographs: Size and depth of those of the training split.
        used_share: Share of the training photographs that is used; below 1 with a few of them.
    """

    dataset: Dataset
    model: ModelConfig
    examples: ExampleSource
    cache: ArrayCache
    shape: tuple[int, ...]
    fingerprint: str
    check_cache: CheckCache
    ignored: tuple[DataSetIssue, ...] = ()
    training_photographs: TrainingPhotographs | None = None
    used_share: float = 1.0


def load_run_data(config: ExperimentConfig, *, few: bool = False) -> RunData:
    """Loads the data of a run; reads each file once, unless an index or an earlier check knows it.

    With `few`, all photographs are checked, and of each class of each fold `DRY_RUN_PHOTOGRAPHS` are used.
    Raises a `SegdecError` if photographs are unusable or in two splits (one error lists all), or do not fit
    the configuration.
    """
    # === 1. List ===
    data = config.data
    dataset = list_dataset(data, data.splits)
    model = build_model_config(config, dataset.classes)

    # === 2. Check the files ===
    check_cache = open_check_cache(config, model.network.input_channels)
    checked = check_files(config, dataset, model.network.input_channels, check_cache)

    # === 3. Assign folds and find leaks ===
    if model.network.folds > 1:
        checked = assign_network_folds(checked, model.network, config.seed)
    warn_of_near_leaks(dataset, checked.photographs, data.allowed_leaks)
    raise_if_unusable(dataset, checked, allowed_leaks=data.allowed_leaks, skip_broken=data.skip_broken)

    # === 4. Relabel ===
    read_item = item_reader(config)
    items = relabel_uninspected(checked.dataset.items, read_item, config.input)
    usable = replace(checked.dataset, items=items, problems=())
    check_learnable(config, model, usable)
    photographs = len(usable.of_split("train"))
    if few and model.network.folds > 1:
        usable = replace(usable, items=pick_few(items))

    def read_example(item: DataSetItem) -> Sample:
        return dilate_sample(read_item(item), config.target)

    cache = ArrayCache(data.cache_mb, data.cache_folder, data.disk_cache_mb)
    used = usable.of_split("train")
    examples = build_source(used, read_example, model, cache)
    shape, digest, ignored = examples.common_shape(), fingerprint(items), checked.dataset.problems
    trained, share = describe_training(checked), len(used) / photographs
    return RunData(usable, model, examples, cache, shape, digest, check_cache, ignored, trained, share)


def pick_few(items: Sequence[DataSetItem]) -> tuple[DataSetItem, ...]:
    """Returns `DRY_RUN_PHOTOGRAPHS` items of each class of each fold, and those without a fold."""
    seen: Counter[tuple[int | None, int]] = Counter()
    picked = []
    for item in items:
        seen[item.fold, item.label] += 1
        if item.fold is None or seen[item.fold, item.label] <= DRY_RUN_PHOTOGRAPHS:
            picked.append(item)
    return tuple(picked)


def assign_network_folds(checked: CheckedDataset, network: NetworkConfig, seed: int) -> CheckedDataset:
    """Assigns the photographs of train and val to train, each to a fold of the network.

    Folds of a split file are kept. Near duplicates are searched for photographs without a fold. Raises a
    `DatasetError` if a fold would lack good photographs, or those for its head defective ones, or the
    photographs are packed.
    """
    if isinstance(checked.photographs, UnreadPhotographs):
        raise DatasetError(
            f"network.heads = {network.heads} needs folds, which packed photographs do not have. Expected "
            "photographs in files, or network.heads = 1."
        )
    own = [one for one in checked.photographs if one.item.split in ("train", "val")]
    duplicates: Duplicates = ()
    if any(one.item.fold is None for one in own):
        shares, searched = [1] * network.folds, checked.photographs  # the search for leaks finds the same
        duplicates, notes = near_duplicates_for_split(own, shares, seed, searched=searched)
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    good_only = not network.heads
    return assign_folds(checked, network.folds, seed=seed, duplicates=duplicates, good_only=good_only)


def describe_training(checked: CheckedDataset) -> TrainingPhotographs | None:
    """Returns size and depth of the training photographs; the depth of packed ones is unknown."""
    if isinstance(checked.photographs, UnreadPhotographs):
        train = checked.dataset.of_split("train")
        sizes = train.shapes() if isinstance(train, LazyItems) else ()
        return TrainingPhotographs.of(((height, width) for height, width, _ in sizes), ())
    training = [one for one in checked.photographs if one.item.split == "train"]
    depths = [one.bit_depth for one in training if one.bit_depth is not None]
    return TrainingPhotographs.of(((one.height, one.width) for one in training), depths)


# === Listing ===


def list_dataset(config: DataConfig, splits: Path | None) -> Dataset:
    """Lists the data set of an experiment, unchecked, with the splits of the file `splits`.
    Raises a `SegdecError` if the data set or one of its text files cannot be read.
    """
    return load_dataset(
        config.layout,
        config.root,
        splits,
        ReadingOptions.of(config),
        supervision=config.supervision,
        merge_defects=config.merge_defects,
        reviewed=config.reviewed,
        test_root=config.test_root,
    )


def list_split_items(
    config: ExperimentConfig, splits: Path, classes: tuple[str, ...], split: Split
) -> Sequence[DataSetItem]:
    """Lists the photographs of a split as they were when the run with these `splits` and classes started.
    Raises a `SegdecError` if one of them has become unusable, or the split is empty.
    """
    data = config.data
    dataset = read_class_indices(list_dataset(data, splits).assigned(), data.max_pixels)  # as the check does
    known = {line.name for line in read_split_lines(splits) if SPLIT_WORDS[line.word][0] == split}
    if broken := [problem for problem in dataset.problems if problem.name in known]:
        raise DatasetError(describe_problems(broken))
    if dataset.classes != classes:
        raise DatasetError(
            f"'{data.root}' has the classes {', '.join(dataset.classes)}. "
            f"Expected those of the trained model: {', '.join(classes)}."
        )
    if not dataset.of_split(split):
        raise DatasetError(
            f"The split '{split}' of '{data.root}' is empty. Evaluate another --split, or train with a "
            "splits file that contains it."
        )
    return relabel_uninspected(dataset.of_split(split), item_reader(config), config.input)


def build_model_config(config: ExperimentConfig, classes: tuple[str, ...]) -> ModelConfig:
    """Builds the model configuration for these classes; `num_classes` is optional.
    Raises a `ConfigError` if `num_classes` is set and differs.
    """
    network = config.network
    if "num_classes" not in network.model_fields_set:
        network = network.model_copy(update={"num_classes": len(classes)})
    try:
        return ModelConfig(network=network, input=config.input, classes=classes)
    except ValidationError as error:
        raise config_error(error, ModelConfig) from error


# === Reading ===


def item_reader(config: ExperimentConfig) -> Callable[[DataSetItem], Sample]:
    """Returns a function that reads an item, with its mask clipped to the inspected area."""
    read_whole = partial(read, white_level=config.input.white_level, max_pixels=config.data.max_pixels)
    return lambda item: clip_mask(read_whole(item), config.input)


def cached_reader(
    read: Callable[[DataSetItem], Sample], cache: ArrayCache
) -> Callable[[DataSetItem], Sample]:
    """Returns `read` with cached pixels."""

    def read_cached(item: DataSetItem) -> Sample:
        cached = cache.get(item.name)
        if cached is not None:
            mask, classes, ignored = (cached.get(name) for name in ("mask", "classes", "ignored"))
            return Sample(item.name, cached["image"], mask, item.label, item.supervision, classes, ignored)
        sample = read(item)
        arrays = {"image": sample.image, "mask": sample.mask, "classes": sample.classes}
        arrays["ignored"] = sample.ignored
        cache.put(item.name, {name: array for name, array in arrays.items() if array is not None})
        return sample

    return read_cached


# === Checking ===


def check_files(
    config: ExperimentConfig, dataset: Dataset, channels: int, check_cache: CheckCache
) -> CheckedDataset:
    """Checks the items that have a split and prints warnings; problems are part of the result."""
    checked = check_dataset(
        dataset.assigned(),
        white_level=config.input.white_level,
        max_pixels=config.data.max_pixels,
        progress=lambda items: progress_bar(items, desc="checking", unit="image", leave=False),
        examine=lambda sample: prepare_sample(sample, config.input, channels),
        trusted=lambda shape: prepared_shape(shape, config.input, channels) is not None,
        known=check_cache,
        strict=config.data.strict,
    )
    cover = check_mask_cover(checked, decided=config.data.invert_masks is not None)
    for note in checked.dataset.notes:
        print(f"note: {note}", file=sys.stderr)
    for risk in [*cover, *describe_risks(checked)]:
        print(f"warning: {risk}", file=sys.stderr)
    return checked


def open_check_cache(config: ExperimentConfig, channels: int) -> CheckCache:
    """Opens the results of earlier checks that are valid for this experiment."""
    # `prepare_sample` depends on no other setting of the input.
    settings: list[object] = [config.input.white_level, config.input.convert_color, channels]
    if config.input.is_partial:
        area = {"regions_of_interest", "ignored_areas", "interest_mask"}
        settings.append(config.input.model_dump(mode="json", include=area))
    root, trust = str(config.data.root), not config.data.recheck
    return CheckCache(config.checked_folder, root, repr(settings), trust=trust)


def check_learnable(config: ExperimentConfig, model: ModelConfig, dataset: Dataset) -> None:
    """Checks that training and validation contain what the experiment needs.
    Raises a `DatasetError` if they lack good or defective photographs, or nothing distinguishes the classes.
    """
    good_only = config.augmentation.synthetic > 0 or not config.network.heads
    for split in ("train", "val") if model.network.folds == 1 else ("train",):
        _check_split(split, dataset.of_split(split), good_only=good_only)
    training = dataset.of_split("train")
    if len(dataset.classes) > 2 and not labels_of(training).any():
        raise DatasetError(
            f"The training split has only good photographs, but the data set has {len(dataset.classes) - 1} "
            f"classes of defects ({', '.join(dataset.classes[1:])}), which synthetic defects do not "
            "distinguish. Expected one class: set data.merge_defects = true, or add defective photographs of "
            "each class to the training split."
        )
    if model.network.mask_classes:
        check_localized(training, dataset.classes)


def _check_split(split: str, items: Sequence[DataSetItem], *, good_only: bool) -> None:
    """Checks that a split has good photographs, and defective ones unless `good_only` are enough."""
    defective = int(np.count_nonzero(labels_of(items)))
    good = len(items) - defective
    if good and (defective or good_only):
        return
    advice = "name them in a splits file and pass --data.splits FILE, or add photographs."
    if good:
        advice += (
            " For good photographs only, set network.memory above 0 and network.heads to 0, or "
            "augmentation.synthetic above 0."
        )
    raise DatasetError(
        f"The split '{split}' has {good} good and {count_of(defective, 'defective photograph')}. Expected "
        f"{'some good ones' if good_only else 'some of both'}, for training and thresholds: {advice}"
    )


def check_localized(items: Sequence[DataSetItem], classes: tuple[str, ...]) -> None:
    """Checks that each class of defects has a mask or box in training: otherwise its mask would stay empty.
    Raises a `DatasetError` if a class has none.
    """
    labels = labels_of(items)
    localized = set(labels[~unlocalized(items)].tolist())
    if any(item.mask_values is not None for item in items):  # only the pixels contain the classes
        return
    missing = [name for number, name in enumerate(classes) if number in set(labels.tolist()) - localized]
    if missing:
        raise DatasetError(
            f"network.mask_classes with label-only annotations: no training photograph of the class "
            f"'{missing[0]}' has a mask or box, so that no region could get this class. Add some, or set "
            "network.mask_classes to false."
        )


def fingerprint(items: Sequence[DataSetItem]) -> str:
    """Returns the SHA-256 over names, splits, labels, annotations and file contents of checked items."""
    if isinstance(items, LazyItems):
        identities = items.identities()
    else:
        identities = map(DataSetItem.identity, sorted(items, key=lambda item: item.name))
    digest = hashlib.sha256()
    for identity in identities:
        digest.update(identity)
    return digest.hexdigest()
