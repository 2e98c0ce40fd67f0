"""The folder of one run: what lies where, and who may write there."""

import errno
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from datasets.splitting import write_splits
from segdec.config import EncoderWeights, config_error
from segdec.errors import RunError
from segdec.network.network import SegDecNet, build_network
from segdec.runtime.files import atomic_folder, remove_temporary_files, write_text_atomic
from training.config import ExperimentConfig, changeable_settings, differing_settings
from training.data.run_data import RunData
from training.experiment_file import load_experiment, save_experiment
from training.run.disk_errors import explained_disk_errors
from training.run.lock import LOCK, RunLock
from training.run.records import RunResult, record_environment, record_left_out

HDF5_MARGIN = 1 << 20
"""What a weights file takes beside its numbers at most, bytes."""


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run: configuration, splits, log, checkpoints, TensorBoard events, weights, result."""

    path: Path
    lock: RunLock | None = None

    @property
    def checkpoints(self) -> Path:
        """Checkpoints of the run."""
        return self.path / "checkpoints"

    @property
    def splits(self) -> Path:
        """The split of every image that the run was started with; it says which data they were."""
        return self.path / "splits.txt"

    @property
    def _config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def _encoder_path(self) -> Path:
        return self.path / "encoder.json"

    @property
    def _result_path(self) -> Path:
        return self.path / "result.json"

    @property
    def weights_path(self) -> Path:
        """The trained network, once the run has ended."""
        return self.path / "network.weights.h5"

    @classmethod
    def open(
        cls,
        config: ExperimentConfig,
        data: RunData,
        encoder: EncoderWeights | None = None,
        *,
        fresh: bool,
    ) -> Self:
        """Makes the folder of a run, or takes up the one that exists, and keeps other processes out.

        What a killed process left half-written is removed. Call `close` when the run has ended.

        Args:
            config: The experiment.
            data: Its photographs.
            encoder: The weights that its encoder begins with, where it reads any.
            fresh: Replace a run that exists.

        Raises:
            RunError: If the folder holds something else, a run of another configuration, of other data or
                of another encoder's weights, or is in use by another process. Nothing was changed.
        """
        path = config.folder
        if not path.exists():
            lock = cls._make(path, config, data, encoder)
        elif fresh:
            lock = cls._replace(path, config, data, encoder)
        else:
            lock = cls._take_up(path, config, data, encoder)
        folder = cls(path, lock)
        folder._remove_leftovers()
        if folder.has_result:
            config = folder._with_own_threshold(config)
        with explained_disk_errors(path):
            write_text_atomic(folder._config_path, save_experiment(config))  # some of it may have changed
            record_environment(path)
            record_left_out(path, data.left_out)
        return folder

    def _with_own_threshold(self, config: ExperimentConfig) -> ExperimentConfig:
        """A finished run keeps what its limits were chosen by."""
        own = self.experiment().threshold
        if own != config.threshold:
            print(
                f"note: '{self.path}' has ended, and keeps its limits. Choose them anew with: "
                f"python -m training calibrate {self.path} --threshold.field value",
                file=sys.stderr,
            )
        return config.model_copy(update={"threshold": own})

    @property
    def lock_owner(self) -> str:
        """What names the process that holds the folder; empty where no folder is to be seen."""
        path = self.path / LOCK
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def close(self) -> None:
        """Lets other processes in."""
        if self.lock is not None:
            self.lock.release()

    @property
    def has_result(self) -> bool:
        """Whether the run came to its end."""
        return self._result_path.exists()

    @classmethod
    def finished(cls, path: Path) -> Self:
        """Returns the folder of a run that came to its end.

        Raises:
            RunError: If there is no such run, or it has not finished.
        """
        folder = cls(path)
        folder.check_is_run()
        if not folder.has_result:
            raise RunError(
                f"The run '{path}' has not finished: it has no {folder._result_path.name}. "
                "Let it go on with: python -m training run EXPERIMENT.toml"
            )
        return folder

    def experiment(self, flags: list[str] | None = None) -> ExperimentConfig:
        """Reads the configuration that the run was started with; flags `--field value` are laid over it."""
        return load_experiment(self._config_path, flags)

    def encoder(self) -> EncoderWeights | None:
        """Reads where the weights come from that the run's encoder began with; None if none were read."""
        if not self._encoder_path.exists():
            return None
        try:
            return EncoderWeights.model_validate_json(self._encoder_path.read_bytes())
        except ValidationError as error:
            raise config_error(error, EncoderWeights) from error

    def result(self) -> RunResult:
        """Reads what training ended with."""
        try:
            return RunResult.model_validate_json(self._result_path.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise config_error(error, RunResult) from error

    def network(self) -> SegDecNet:
        """Loads the trained network."""
        network = build_network(self.result().model.network)
        try:
            network.load_weights(self.weights_path)
        except (OSError, ValueError) as error:
            raise RunError(f"Cannot read the weights '{self.weights_path}': {error}. Train again.") from error
        return network

    def save_result(self, network: SegDecNet, result: RunResult) -> None:
        """Writes weights, then the result that declares them finished: afterwards both are whole.

        Raises:
            RunError: If the disk is full or not writable.
        """
        with (
            explained_disk_errors(self.path),
            tempfile.TemporaryDirectory(dir=self.path, prefix=".", suffix=".tmp") as scratch,
        ):
            weights = Path(scratch) / self.weights_path.name
            # HDF5 brings the process down when the disk fills up under it: ask for the space beforehand.
            weights.write_bytes(bytes(sum(weight.numpy().nbytes for weight in network.weights) + HDF5_MARGIN))
            network.save_weights(weights)
            weights.replace(self.weights_path)
            write_text_atomic(self._result_path, result.model_dump_json(indent=2) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out of a finished run until the block ends.

        Raises:
            RunError: If one works in the folder.
        """
        lock = RunLock(self.path)
        try:
            yield
        finally:
            lock.release()

    def save_thresholds(self, config: ExperimentConfig, result: RunResult) -> None:
        """Writes what a finished run has other limits by, and its result with them; its weights stay.

        Raises:
            RunError: If the disk is full or not writable.
        """
        with explained_disk_errors(self.path):
            write_text_atomic(self._result_path, result.model_dump_json(indent=2) + "\n")
            write_text_atomic(self._config_path, save_experiment(config))

    @classmethod
    def _make(
        cls,
        path: Path,
        config: ExperimentConfig,
        data: RunData,
        encoder: EncoderWeights | None,
        *,
        overwrite: bool = False,
    ) -> RunLock:
        """The lock is taken before the folder appears, so that nobody comes in between."""
        try:
            with atomic_folder(path, overwrite=overwrite) as staged:
                cls(staged)._config_path.write_text(save_experiment(config), encoding="utf-8")
                write_splits(cls(staged).splits, data.dataset.records, comment=_data_line(data))
                if encoder is not None:
                    text = encoder.model_dump_json(indent=2) + "\n"
                    cls(staged)._encoder_path.write_text(text, encoding="utf-8")
                return RunLock(staged)
        except OSError as error:
            if not (isinstance(error, FileExistsError) or error.errno == errno.ENOTEMPTY):
                raise
            raise RunError(
                f"Another process has just made '{path}'. Wait until it has ended, or choose another --name."
            ) from error

    @classmethod
    def _replace(
        cls, path: Path, config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None
    ) -> RunLock:
        cls(path).check_is_run()
        former = RunLock(path)
        try:
            return cls._make(path, config, data, encoder, overwrite=True)
        finally:
            former.release()

    @classmethod
    def _take_up(
        cls, path: Path, config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None
    ) -> RunLock:
        cls(path).check_is_run()
        cls(path)._check_same_config(config)
        cls(path)._check_same_data(data)
        cls(path)._check_same_encoder(encoder)
        return RunLock(path)

    def _remove_leftovers(self) -> None:
        path = self.path.resolve()
        remove_temporary_files(path)
        remove_temporary_files(path.parent, path.name)

    def check_is_run(self) -> None:
        """Checks that it is the folder of a run.

        Raises:
            RunError: If it is none.
        """
        if not self._config_path.is_file():
            raise RunError(
                f"'{self.path}' is not a run folder: it has no config.toml. Give the folder of a run, or "
                "another --name to start one."
            )

    def _check_same_config(self, config: ExperimentConfig) -> None:
        for field, old, new in differing_settings(self.experiment(), config):
            raise RunError(
                f"The run '{self.path}' was started with {field} = {old!r:.200}, now it is {new!r:.200}. "
                "Choose another --name, or start over with --fresh."
            )

    def _check_same_data(self, data: RunData) -> None:
        if not self.splits.read_text(encoding="utf-8").startswith(f"# {_data_line(data)}\n"):
            raise RunError(
                f"The images in '{self.path}' were others: files, masks or splits have changed since the "
                f"run was started (see {self.splits}). Choose another --name, or start over with --fresh."
            )

    def _check_same_encoder(self, encoder: EncoderWeights | None) -> None:
        old, new = _digest(self.encoder()), _digest(encoder)
        if old != new:
            raise RunError(
                f"The encoder of the run '{self.path}' was begun with {_weights(old)}, now encoder_weights "
                f"gives {_weights(new)}. Give the same file as then, choose another --name, or start over "
                "with --fresh."
            )


def run_digest(config: ExperimentConfig, data: RunData, encoder: EncoderWeights | None = None) -> str:
    """Returns the SHA-256 over what must not change during a run.

    That is its data, the weights that its encoder begins with, and its settings but for changeable ones.
    """
    changeable = changeable_settings()
    fixed = {field: value for field, value in config.flatten().items() if field not in changeable}
    contents = [data.fingerprint, _digest(encoder), fixed]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _digest(encoder: EncoderWeights | None) -> str | None:
    """Where the file of the weights lies does not matter, nor by which name it was given."""
    return None if encoder is None else encoder.sha256


def _data_line(data: RunData) -> str:
    return f"data fingerprint {data.fingerprint}"


def _weights(digest: str | None) -> str:
    return "random weights" if digest is None else f"weights of SHA-256 {digest}"
