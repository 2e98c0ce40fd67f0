"""Builds the image `serve`, runs it as its own user and has it record a photograph.

The user may write to /tmp and /record only.

    python -m deploy.image.check MODEL [--port 8000]

Uses a Docker engine if there is one; otherwise buildah and chroot as root, on a base from debootstrap. Prints
the size of each layer; exits with 1 if a check fails.
`IMAGE_BUILD_FLAGS` are added to the build, such as a volume with certificates.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGE, BASE = "segdec:check", "docker.io/library/python:3.11.13-slim"
READY_S, STOP_S = 120.0, 60.0
RECORDING = ("--env", "SEGDEC_RECORD=required")
WRITABLE = ("/record", "/tmp", "/var/tmp", "/run/lock", "/proc", "/sys", "/dev")
"""The record's folder, folders that any user of a base image may write to, and those of the kernel."""


class Docker:
    """A Docker engine, which also makes the root file system read-only."""

    def build(self) -> None:
        """Builds `IMAGE`."""
        run("docker", "build", "--target", "serve", "-t", IMAGE, *build_flags(), str(ROOT))

    def layers(self) -> Iterator[tuple[str, int]]:
        """Yields the command and the bytes of each layer that is not empty."""
        words = ("--no-trunc", "--human=false", "--format", "{{.Size}} {{.CreatedBy}}")
        lines = run("docker", "history", *words, IMAGE)
        for line in reversed(lines.splitlines()):
            size, _, made = line.partition(" ")
            if int(size):
                yield made, int(size)

    def start(self, model: Path, port: int) -> None:
        """Starts the image's own entry as the image's own user."""
        folders = (
            "--tmpfs",
            "/tmp",
            "--mount",
            "type=volume,destination=/record",
            "-v",
            f"{model}:/models:ro",
        )
        mounts = ("--read-only", *folders, "-p", f"127.0.0.1:{port}:8000")
        self._name = run("docker", "run", "--detach", *mounts, *RECORDING, IMAGE).strip()

    def stop(self) -> int:
        """Sends the stop signal; returns the exit code."""
        run("docker", "stop", "--time", str(int(STOP_S)), self._name)
        code = int(run("docker", "inspect", "--format", "{{.State.ExitCode}}", self._name))
        run("docker", "rm", "--volumes", self._name)
        return code


class Buildah:
    """Without an engine: chroot with a writable root; checks which folders the user may write to."""

    def build(self) -> None:
        """Builds `IMAGE`, and its base if that is not there."""
        if BASE not in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            self._make_base()
        flags = ("--isolation", "chroot", "--pull=never", "--layers", "--format", "docker")
        buildah("build", *flags, "--target", "serve", "-t", IMAGE, *build_flags(), str(ROOT))

    def layers(self) -> Iterator[tuple[str, int]]:
        """Yields the command and the bytes of each layer that is not empty."""
        with tempfile.TemporaryDirectory() as folder:
            buildah("push", "--disable-compression", IMAGE, f"dir:{folder}")
            manifest = json.loads(Path(folder, "manifest.json").read_text())
            config = json.loads(Path(folder, manifest["config"]["digest"].split(":")[1]).read_text())
        steps = [step for step in config["history"] if not step.get("empty_layer")]
        made = [step.get("created_by", "the base") for step in steps]
        yield from zip(made, (layer["size"] for layer in manifest["layers"]), strict=True)

    def start(self, model: Path, port: int) -> None:
        """Starts the image."""
        self._container = buildah("from", "--pull=never", IMAGE).strip()
        writable = self._run("find", "/", "-xdev", "-writable", "-not", "-type", "l").split()
        outside = [path for path in writable if not path.startswith(WRITABLE)]
        if outside:
            found = ", ".join(outside[:5])
            raise SystemExit(f"error: the image's user may write {found}. Expected /tmp and /record.")
        config = json.loads(buildah("inspect", IMAGE))["OCIv1"]["config"]
        mount = ("-v", f"{model}:/models:ro", "--env", f"SEGDEC_PORT={port}", *RECORDING)
        command = ("run", "--isolation", "chroot", *mount, self._container, "--", *config["Entrypoint"])
        self._process = subprocess.Popen(["buildah", *STORAGE, *command])
        self._stop_signal = signal.Signals[config["StopSignal"]]

    def stop(self) -> int:
        """Sends the stop signal to the image's process; returns the exit code."""
        os.kill(innermost(self._process.pid), self._stop_signal)
        code = self._process.wait(STOP_S)
        buildah("rm", self._container)
        return code

    def _run(self, *command: str) -> str:
        words = ["buildah", *STORAGE, "run", "--isolation", "chroot", self._container, "--", *command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # find meets closed folders
        return done.stdout

    def _make_base(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            packages = "--include=python3,python3-venv,ca-certificates"
            run("debootstrap", "--variant=minbase", packages, "bookworm", folder)
            container = buildah("from", "scratch").strip()
            buildah("add", container, folder, "/")
            buildah("commit", "--rm", container, BASE)


STORAGE = ("--storage-driver", "vfs")


def main() -> int:
    """Checks; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the image and run it.")
    parser.add_argument("model", type=Path, help="folder of an exported model")
    parser.add_argument("--port", type=int, default=8000, help="on this machine (default: %(default)s)")
    options = parser.parse_args()
    photograph = options.model / "self_test" / "photograph.png"
    if not photograph.is_file():
        raise SystemExit(f"error: {options.model} is not a model: {photograph} is missing. Run make demo.")
    engine = find_engine()
    engine.build()
    for made, size in engine.layers():
        print(f"{size / 1e6:8.1f} MB  {made[:90]}")
    engine.start(options.model.resolve(), options.port)
    try:
        answer = ask(f"http://127.0.0.1:{options.port}", photograph.read_bytes())
    finally:
        code = engine.stop()
    print(f"answered {answer['decision']['label']!r}, recorded as {answer['record_id']}, stopped with {code}")
    return 0 if code == 0 else 1


def find_engine() -> Docker | Buildah:
    """Finds Docker where its engine answers, else buildah."""
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "info"], capture_output=True, check=False)
        if asked.returncode == 0:
            return Docker()
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    if missing:
        absent = " and no ".join(missing)
        raise SystemExit(f"error: no Docker engine, and no {absent}. Expected one of the two ways.")
    return Buildah()


def ask(url: str, photograph: bytes) -> Any:
    """Waits until the service is ready and returns its answer to a photograph."""
    end = time.monotonic() + READY_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
            break
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise SystemExit(f"error: {url} was not ready after {READY_S:.0f} s.") from None
            time.sleep(0.5)
    request = urllib.request.Request(f"{url}/v1/inspect?mask=none", photograph, {"Content-Type": "image/png"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def innermost(process: int) -> int:
    """Returns the last of the processes that each have one child."""
    while True:
        files = Path(f"/proc/{process}/task").glob("*/children")
        children = [child for file in files for child in file.read_text().split()]
        if not children:
            return process
        process = int(children[0])


def build_flags() -> list[str]:
    """Returns the flags in `IMAGE_BUILD_FLAGS`."""
    return shlex.split(os.environ.get("IMAGE_BUILD_FLAGS", ""))


def buildah(*words: str) -> str:
    """Runs buildah and returns its output."""
    return run("buildah", *STORAGE, *words)


def run(*words: str) -> str:
    """Runs a command and returns its output; exits if it fails."""
    print("$", shlex.join(words), file=sys.stderr)
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {words[0]} ended with {done.returncode}.")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
