"""The service and a training worker on this machine, as `make studio` starts them, with weights from a file.

python -m benchmarks.serving.studio_programs URL KEY_FILE FOLDER WEIGHTS

runs the worker; its trainings read the encoder's weights from the file instead of those that the product
downloads or finds in a package.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.accounts.keys import make_key
from benchmarks.environments import signal_group, start_process
from benchmarks.serving.server_process import ServerProcess
from segdec.errors import ConfigError

MODULE = "benchmarks.serving.studio_programs"
STOP_S = 30.0


@contextmanager
def running_studio(folder: Path, weights: Path | None) -> Iterator[str]:
    """Runs both programs with their files in a new folder; yields the URL of the service.

    Raises:
        ConfigError: If the folder has files, or the file of weights does not exist.
        RunError: If the service does not start.
    """
    folder = folder.absolute()
    if folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(
            f"The folder '{folder}' has files. Expected a new or empty folder: give another one."
        )
    if weights is not None and not weights.is_file():
        raise ConfigError(f"The file '{weights}' does not exist. Expected the weights of an encoder.")
    folder.mkdir(parents=True, exist_ok=True)
    key, line = make_key("local")
    (folder / "key.txt").write_text(f"{key}\n", "utf-8")
    (folder / "keys.txt").write_text(f"{line}\n", "utf-8")
    with _service(folder) as service:
        url = f"http://127.0.0.1:{service.port}"
        with _running_worker(folder, url, weights):
            yield url


def _service(folder: Path) -> ServerProcess:
    command = [sys.executable, "-m", "api", "--port", "{port}", "--models", str(folder / "models")]
    command += ["--allow-no-model", "--local-role", "engineer", "--train-keys", str(folder / "keys.txt")]
    command += ["--record", "required", "--record-folder", str(folder / "record")]
    return ServerProcess(command, ready="/livez")


@contextmanager
def _running_worker(folder: Path, url: str, weights: Path | None) -> Iterator[None]:
    key, place = str(folder / "key.txt"), str(folder / "worker")
    if weights is None:
        arguments = ["training", "worker", "--url", url, "--key-file", key, "--folder", place]
    else:
        arguments = [MODULE, url, key, place, str(weights.absolute())]
    with (folder / "worker.txt").open("w", encoding="utf-8") as output:
        worker = start_process([sys.executable, "-m", *arguments], stdout=output, stderr=output)
    try:
        yield
    finally:
        _stop(worker)


def _stop(worker: "subprocess.Popen[str]") -> None:
    worker.terminate()
    try:
        worker.wait(STOP_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    signal_group(worker, 9)  # the rest of its process group


def work(url: str, key_file: str, folder: str, weights: str) -> None:
    """Runs a worker until SIGTERM."""
    from training.worker import command
    from training.worker.trainer_process import fit_command

    options = command.WorkerOptions(url=url, key_file=Path(key_file), folder=Path(folder), name="local")
    command.work(options, lambda job: [*fit_command(job), "--encoder-weights", weights])


if __name__ == "__main__":
    work(*sys.argv[1:])
