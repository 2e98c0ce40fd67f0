"""The service with data sets, labelling and training on this machine, for a first try.

    python -m examples.studio [--port 8000]

It starts the service and a training worker, and sends a toy data set of which half is labelled. Everything
is in `runs/studio`; the next start continues with it. Ctrl-C ends both.
"""

import argparse
import base64
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np

from api.accounts.keys import make_key
from datasets.layouts.toy import make_sample
from datasets.sample import Sample
from segdec.images import encode_png

FOLDER = Path("runs/studio")
KEYS, KEY = FOLDER / "worker_keys.txt", FOLDER / "worker.key"
COUNT, SIZE = 120, 128
"""Photographs of the toy data set, and their height and width, px."""
CLASS = "damage"


def main() -> None:
    """Runs until Ctrl-C, or until the service or the worker ends."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000, help="port of the service (default: %(default)s)")
    port = parser.parse_args().port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # ends service and worker
    _make_key()
    with _running(*_service_flags(port), output=subprocess.PIPE) as service:
        url = _wait_for_address(service)
        if needs_data_set(url):
            _send_toy_photographs(url)
        with _running(*_worker_flags(url)):
            print(f"\nOpen {url}/datasets. Ctrl-C ends the service and the worker.\n", flush=True)
            with suppress(KeyboardInterrupt):
                sys.exit(service.wait())


def _make_key() -> None:
    """Makes the worker's key at the first start."""
    if KEY.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    key, line = make_key("local")
    KEYS.write_text(f"{line}\n", "utf-8")
    KEY.touch(mode=0o600)
    KEY.write_text(f"{key}\n", "utf-8")


def _service_flags(port: int) -> list[str]:
    flags = ["--models", str(FOLDER / "models"), "--allow-no-model", "--local-role", "engineer"]
    record = ["--record", "required", "--record-folder", str(FOLDER / "record")]
    return ["-m", "api", *flags, *record, "--train-keys", str(KEYS), "--port", str(port)]


def _worker_flags(url: str) -> list[str]:
    return [
        "-m",
        "training",
        "worker",
        "--url",
        url,
        "--key-file",
        str(KEY),
        "--folder",
        str(FOLDER / "worker"),
    ]


@contextmanager
def _running(*words: str, output: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """Runs `python WORDS…` and ends it at the end of the block; its output goes to `output`."""
    print(f"$ python {' '.join(words)}", flush=True)
    with subprocess.Popen([sys.executable, *words], stdout=output, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def _wait_for_address(service: subprocess.Popen[str]) -> str:
    """Returns the address that the service prints when it is ready."""
    assert service.stdout is not None
    line = service.stdout.readline().strip()
    if not line:
        sys.exit(service.wait())
    return line.rsplit(" ", 1)[1]


# === Toy data set ===


def needs_data_set(url: str) -> bool:
    """Returns whether the service has none, and takes one without a log-in."""
    try:
        return not _ask(f"{url}/v1/data-sets")["data_sets"]
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.UNAUTHORIZED:
            return False
        raise


def _send_toy_photographs(url: str) -> None:
    """Creates a data set and sends its photographs; the first half is labelled."""
    print(f"Sending {COUNT} toy photographs, half of them labelled.", flush=True)
    data_set = _ask(f"{url}/v1/data-sets", "POST", {"name": "Toy metal", "classes": [CLASS]})
    path = f"{url}/v1/data-sets/{data_set['id']}/photographs"
    for index in range(COUNT):
        sample = make_sample(index, size=SIZE)
        sent = _ask(f"{path}?name={index:03}.png", "POST", encode_png(sample.image))["photograph"]
        if index < COUNT // 2:
            _ask(f"{path}/{sent['id']}/annotation", "PUT", _annotation(sample))


def _annotation(sample: Sample) -> dict[str, Any]:
    """Returns label and mask of a sample as the service expects them; the mask has the value of the class."""
    if sample.label == 0 or sample.mask is None:
        return {"label": "good", "based_on": None}
    mask = np.where(sample.mask > 0, np.uint8(1), np.uint8(0))
    return {"label": CLASS, "mask": base64.b64encode(encode_png(mask)).decode(), "based_on": None}


def _ask(url: str, method: str = "GET", body: bytes | dict[str, Any] | None = None) -> dict[str, Any]:
    """Sends a request; returns the JSON of the answer."""
    kind = "application/json" if isinstance(body, dict) else "image/png"
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


if __name__ == "__main__":
    main()
