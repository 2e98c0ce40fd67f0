"""The whole line in one command: toy photographs → training → report → artifact → an answer over HTTP.

Each step is the command a user would type; it is printed before it runs. Everything lies in `runs/demo`.
"""

import base64
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # `datasets` and the others are run from the checkout, not installed

from datasets.loading import load_dataset  # noqa: E402
from datasets.sample import Record  # noqa: E402
from segdec.images import read_image, read_mask, write_png  # noqa: E402
from segdec.overlay import draw_overlay  # noqa: E402

DATA = Path("data/toy")
RUN = Path("runs/demo")
MODEL = RUN / "model"


def main() -> None:
    """Runs the steps; any that fails ends the demo with its exit code."""
    begun = time.perf_counter()
    step("datasets", "toy", str(DATA), "--count", "400", "--overwrite")
    step("training", "run", "training/experiments/toy_compact.toml", "--name", RUN.name, "--fresh")
    step("training", "evaluate", str(RUN))
    step("training", "export", str(RUN), str(MODEL), "--overwrite")
    record = largest_test_defect()
    with service() as url:
        answer = ask(url, record.image_file)
    show(record.image_file, answer)
    print(f"Done in {time.perf_counter() - begun:.0f} s.")


def step(*words: str) -> None:
    """Runs `python -m WORDS…`."""
    print(f"\n$ python -m {' '.join(words)}", flush=True)
    finished = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=False)
    if finished.returncode:
        sys.exit(finished.returncode)


def largest_test_defect() -> Record:
    """The photograph with the largest defect among those that the training never saw."""
    records = load_dataset("toy", ROOT / DATA).of_split("test")
    return max(records, key=lambda record: record.mask_file is not None and read_mask(record.mask_file).sum())


@contextmanager
def service() -> Iterator[str]:
    """Serves the model on a free port of this machine; gives its URL."""
    command = [sys.executable, "-m", "api", "--model", str(MODEL), "--port", "0"]
    print("\n$ python -m api --model runs/demo/model --port 0", flush=True)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            if not line:
                sys.exit(process.wait())
            print(line)
            yield line.rsplit(" ", 1)[1]
        finally:
            process.terminate()


def ask(url: str, image: Path) -> dict[str, Any]:
    """Posts a photograph and returns the service's answer."""
    print(f"\n$ curl --data-binary @{image.relative_to(ROOT)} -H 'Content-Type: image/png' {url}/v1/predict")
    request = urllib.request.Request(
        f"{url}/v1/predict", image.read_bytes(), headers={"Content-Type": "image/png"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def show(image: Path, answer: dict[str, Any]) -> None:
    """Prints the decision and writes the overlay."""
    import cv2

    decision = answer["decision"]
    data = np.frombuffer(base64.b64decode(answer["mask"]["data"]), np.uint8)
    mask = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)
    caption = f"{decision['label']}  score {decision['score']:.3f}"
    write_png(ROOT / RUN / "overlay.png", draw_overlay(read_image(image).pixels, mask, caption=caption))
    print(f"label      {decision['label']}")
    print(f"score      {decision['score']:.4f} (threshold {decision['threshold']:.4f})")
    print(f"regions    {len(answer['regions'])}")
    print(f"artifact   {MODEL}")
    print(f"report     {RUN / 'report.html'}")
    print(f"overlay    {RUN / 'overlay.png'}")


if __name__ == "__main__":
    main()
