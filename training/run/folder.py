"""The folder of one run: its files, and which process may write them."""

import errno
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from filelock import FileLock
from pydantic import ValidationError

from datasets.sample import DataSetItem, Split
from datasets.splitting import read_split_lines, write_splits
from segdec.config import EncoderWeights, ModelConfig, config_error
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import RunError
from segdec.network.network import SegDecNet, build_network
from segdec.predictor import Predictor
from segdec.runtime.files import atomic_folder, remove_temporary_files, write_text_atomic
from training.config import ExperimentConfig, changeable_settings, differing_settings
from training.data.feature_cache import FeatureCache
from training.data.fold_engine import FoldEngine
from training.data.run_data import RunData, list_split_items
from training.experiment_file import load_experiment, save_experiment
from training.metrics.evaluation import Parts
from training.run.disk_errors import explained_disk_errors
from training.run.lock import lock_folder
from training.run.records import RunResult, record_environment, record_ignored

HDF5_MARGIN = 1 << 20
"""Upper limit of what a weights file needs in addition to its numbers, bytes."""


class RunFolder:
    """The folder of a run, with the paths of its files.

    Attributes:
        splits: The split of every image, with the fingerprint of the data that the run was started with.
        weights_path: The trained network; exists once the run has finished.
    """

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        self.path, self.lock = path, lock
        self.checkpoints, self.splits = path / "checkpoints", path / "splits.txt"
        self.weights_path = path / "network.weights.h5"
        self._config_path, self._result_path = path / "config.toml", path / "result.json"
        self._encoder_path = path / "encoder.json"

    @property
    def has_result(self) -> bool:
        """Whether the run has finished."""
        return self._result_path.exists()

    # === Opening ===

    @classmethod
    def open(
        cls, config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None = None, *, fresh: bool
    ) -> Self:
        """Creates the folder of a run, or resumes or replaces (`fresh`) the one that exists; locks it.

        Partial files of a killed process are removed. Raises a `RunError` if the folder is not a run, belongs
        to another configuration, other data or other encoder weights, or another process uses it. Nothing was
        changed.
        """
        folder = cls(config.folder)
        if not folder.path.exists():
            lock = folder._create(config, data, encoder, overwrite=False)
        elif fresh:
            folder.check_is_run()
            with folder.locked():
                lock = folder._create(config, data, encoder, overwrite=True)
        else:
            folder.check_is_run()
            folder._check_unchanged(config, data, encoder)
            lock = lock_folder(folder.path)
        folder, place = cls(folder.path, lock), folder.path.resolve()
        remove_temporary_files(place)
        remove_temporary_files(place.parent, place.name)
        if folder.has_result:
            config = folder._with_own_threshold(config)
        with explained_disk_errors(folder.path):
            write_text_atomic(folder._config_path, save_experiment(config))  # changeable settings may differ
            record_environment(folder.path)
            record_ignored(folder.path, data.ignored)
        return folder

    @classmethod
    def finished(cls, path: Path) -> Self:
        """Returns the folder of a finished run; raises a `RunError` if there is none."""
        folder = cls(path)
        folder.check_is_run()
        if not folder.has_result:
            raise RunError(
                f"The run '{path}' has not finished: it has no {folder._result_path.name}. "
                "Resume it with: python -m training run EXPERIMENT.toml"
            )
        return folder

    def close(self) -> None:
        """Releases the lock."""
        if self.lock is not None:
            self.lock.release()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder until the block ends; raises a `RunError` if another process uses it."""
        lock = lock_folder(self.path)
        try:
            yield
        finally:
            lock.release()

    def check_is_run(self) -> None:
        """Raises a `RunError` unless this is the folder of a run."""
        if not self._config_path.is_file():
            raise RunError(
                f"'{self.path}' is not a run folder: it has no config.toml. Give the folder of a run, or "
                "another --name to start one."
            )

    def _create(
        self, config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None, *, overwrite: bool
    ) -> FileLock:
        """Takes the lock before the folder appears, so that no other process can be faster."""
        try:
            with atomic_folder(self.path, overwrite=overwrite) as staged:
                new = RunFolder(staged)
                new._config_path.write_text(save_experiment(config), encoding="utf-8")
                write_splits(new.splits, data.dataset.items, comment=_data_line(data))
                if encoder is not None:
                    new._encoder_path.write_text(encoder.model_dump_json(indent=2) + "\n", encoding="utf-8")
                return lock_folder(staged)
        except OSError as error:
            if not (isinstance(error, FileExistsError) or error.errno == errno.ENOTEMPTY):
                raise
            raise RunError(
                f"Another process has just created '{self.path}'. Wait until it has ended, or choose another "
                "--name."
            ) from error

    def _check_unchanged(
        self, config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None
    ) -> None:
        """Checks that configuration, data and initial encoder weights are those of the first start."""
        for field, old, new in differing_settings(self.experiment(), config):
            raise RunError(
                f"The run '{self.path}' was started with {field} = {old!r:.200}, now it is {new!r:.200}. "
                "Choose another --name, or start over with --fresh."
            )
        if not self.splits.read_text(encoding="utf-8").startswith(f"# {_data_line(data)}\n"):
            raise RunError(
                f"The data of the run '{self.path}' have changed: files, masks or splits are not those of "
                f"its start (see {self.splits}). Choose another --name, or start over with --fresh."
            )
        before, now = _sha256(self.encoder()), _sha256(encoder)
        if before != now:
            raise RunError(
                f"The encoder of the run '{self.path}' started from {_describe_weights(before)}; now "
                f"encoder_weights gives {_describe_weights(now)}. Give the first file, choose another "
                "--name, or start over with --fresh."
            )

    def _with_own_threshold(self, config: ExperimentConfig) -> ExperimentConfig:
        """Keeps the threshold settings of a finished run: `calibrate` may have changed them."""
        own = self.experiment().threshold
        if own != config.threshold:
            print(
                f"note: '{self.path}' has finished and keeps its thresholds. Change them with: "
                f"python -m training calibrate {self.path} --threshold.field value",
                file=sys.stderr,
            )
        return config.model_copy(update={"threshold": own})

    # === Reading ===

    def experiment(self, flags: list[str] | None = None) -> ExperimentConfig:
        """Reads the configuration of the run; flags `--field value` override it."""
        return load_experiment(self._config_path, flags)

    def encoder(self) -> EncoderWeights | None:
        """Reads the origin of the initial encoder weights; None if none were read."""
        if not self._encoder_path.exists():
            return None
        try:
            return EncoderWeights.model_validate_json(self._encoder_path.read_bytes())
        except ValidationError as error:
            raise config_error(error, EncoderWeights) from error

    def result(self) -> RunResult:
        """Reads the result of the training."""
        try:
            return RunResult.model_validate_json(self._result_path.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise config_error(error, RunResult) from error

    def network(self) -> SegDecNet:
        """Loads the trained network; raises a `RunError` if its weights are damaged."""
        network = build_network(self.result().model.network)
        try:
            network.load_weights(self.weights_path)
        except (OSError, ValueError) as error:
            raise RunError(f"Cannot read the weights '{self.weights_path}': {error}. Train again.") from error
        return network

    def predictor(self) -> Predictor:
        """Loads the trained network with its thresholds."""
        return Predictor(NetworkEngine(self.network()), self.result().model)

    @property
    def compared_split(self) -> Split:
        """The split on which versions are compared: test, or with folds train if no photograph is in test."""
        tested = any(line.word == "test" for line in read_split_lines(self.splits))
        return "test" if tested else self.experiment().validation_split

    def parts(self, split: Split) -> Parts:
        """Returns the images of a split with the predictor of each: the network with its thresholds, or its
        part that was built without the image's fold.
        Raises a `SegdecError` if the images can no longer be found.
        """
        items, predictor = self.items(split), self.predictor()
        if split != "train" or self.experiment().network.folds == 1:
            return [(predictor, items)]
        return parts_by_fold(self.network(), items, predictor.config)

    def items(self, split: Split) -> Sequence[DataSetItem]:
        """Lists the images of a split; raises a `SegdecError` if they can no longer be found."""
        return list_split_items(self.experiment(), self.splits, self.result().model.classes, split)

    # === Writing ===

    def save_result(self, network: SegDecNet, result: RunResult) -> None:
        """Writes the weights, then the result, which marks the run as finished.
        Raises a `RunError` if the disk is full or not writable.
        """
        with (
            explained_disk_errors(self.path),
            tempfile.TemporaryDirectory(dir=self.path, prefix=".", suffix=".tmp") as scratch,
        ):
            weights = Path(scratch) / self.weights_path.name
            # HDF5 crashes the process if the disk fills up while it writes: reserve the space first.
            weights.write_bytes(bytes(sum(weight.numpy().nbytes for weight in network.weights) + HDF5_MARGIN))
            network.save_weights(weights)
            weights.replace(self.weights_path)
            write_text_atomic(self._result_path, result.model_dump_json(indent=2) + "\n")

    def save_thresholds(self, config: ExperimentConfig, result: RunResult) -> None:
        """Writes configuration and result of a finished run; raises a `RunError` if the disk is full."""
        with explained_disk_errors(self.path):
            write_text_atomic(self._result_path, result.model_dump_json(indent=2) + "\n")
            write_text_atomic(self._config_path, save_experiment(config))


def parts_by_fold(
    network: SegDecNet, items: Sequence[DataSetItem], model: ModelConfig, features: FeatureCache | None = None
) -> Parts:
    """Returns the items of each fold with the part of the network that was built without them.

    With `features`, it runs on cached features, which are rounded.
    """
    parts = []
    for fold in range(network.config.folds):
        engine = (
            NetworkEngine(network.without_fold(fold))
            if features is None
            else FoldEngine(network, fold, features)
        )
        own = [item for item in items if item.fold == fold + 1]
        parts.append((Predictor(engine, model), own))
    return parts


def run_digest(config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None = None) -> str:
    """Returns the SHA-256 of data, initial encoder weights and all settings that are not changeable."""
    changeable = changeable_settings()
    fixed = {field: value for field, value in config.flatten().items() if field not in changeable}
    contents = [data.fingerprint, _sha256(encoder), fixed]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _sha256(encoder: EncoderWeights | None) -> str | None:
    """The content of the weights file counts, not its name or place."""
    return None if encoder is None else encoder.sha256


def _data_line(data: RunData) -> str:
    return f"data fingerprint {data.fingerprint}"


def _describe_weights(sha256: str | None) -> str:
    return "random weights" if sha256 is None else f"weights with SHA-256 {sha256}"
