"""The images of a run, checked before anything is written."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from datasets.layouts import load_dataset
from datasets.reading import DigestingReader
from datasets.sample import Dataset, Record
from segdec.config import ModelConfig, explain
from segdec.errors import DatasetError
from training.config import DataConfig, ExperimentConfig
from training.example_cache import ExampleCache
from training.targets import ExampleSource, known_shape, prepare_sample


@dataclass(frozen=True)
class RunData:
    """What a run trains and validates on.

    Attributes:
        dataset: All records, with their splits.
        model: The model that these classes and the experiment ask for.
        examples: The training images, prepared.
        shape: Their common shape (h, w, C).
        fingerprint: SHA-256 over names, splits, labels and file contents of all records in a split.
    """

    dataset: Dataset
    model: ModelConfig
    examples: ExampleSource
    shape: tuple[int, ...]
    fingerprint: str


def load_run_data(config: ExperimentConfig) -> RunData:
    """Reads every photograph once; none where an index tells sizes and digests.

    Raises:
        SegdecError: If the data cannot be read, do not fit the configuration, or cannot be learnt from.
    """
    dataset = load_dataset(config.data.layout, config.data.root, config.data.splits)
    for split in ("train", "val"):
        check_split(split, dataset.of_split(split))
    model = build_model_config(config, dataset.classes)
    channels = model.network.input_channels
    reader = DigestingReader(config.input.white_level)
    examples = ExampleSource(
        dataset.of_split("train"),
        reader.read,
        config.input,
        channels,
        config.target,
        build_cache(config.data),
    )
    shape = examples.check_one_size()
    for record in dataset.of_split("val"):
        if known_shape(record, config.input, channels) is None:
            prepare_sample(reader.read(record), config.input, channels)
    return RunData(dataset, model, examples, shape, fingerprint(dataset.records, reader))


def build_cache(config: DataConfig) -> ExampleCache:
    """The cache of prepared images that `config` asks for.

    Raises:
        ConfigError: If its folder cannot be used.
    """
    return ExampleCache(config.cache_mb, config.cache_folder, config.disk_cache_mb)


def build_model_config(config: ExperimentConfig, classes: tuple[str, ...]) -> ModelConfig:
    """The model of an experiment for these classes; their number need not be configured.

    Raises:
        ConfigError: If it is configured and does not fit.
    """
    network = config.network
    if "num_classes" not in network.model_fields_set:
        network = network.model_copy(update={"num_classes": len(classes)})
    try:
        return ModelConfig(network=network, input=config.input, classes=classes)
    except ValidationError as error:
        raise explain(error, ModelConfig) from error


def check_split(split: str, records: Sequence[Record]) -> None:
    """Refuses a split without good or without defective images.

    Raises:
        DatasetError: If one kind is missing.
    """
    defective = sum(record.label != 0 for record in records)
    good = len(records) - defective
    if not good or not defective:
        raise DatasetError(
            f"The split '{split}' holds {good} good and {defective} defective images. Expected some of "
            "both, to learn from and to choose thresholds by: name them in a splits file and pass "
            "--data.splits FILE, or add images."
        )


def fingerprint(records: Sequence[Record], reader: DigestingReader) -> str:
    """SHA-256 over names, splits, labels and file contents of the records that have a split."""
    digest = hashlib.sha256()
    for record in sorted(records, key=lambda record: record.name):
        if record.split is None:
            continue
        digest.update(f"{record.name}\0{record.split}\0{record.label}\0".encode())
        for sha256 in reader.digests(record):
            digest.update(bytes.fromhex(sha256))
    return digest.hexdigest()
