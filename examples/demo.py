"""The whole product in one command: toy photographs → training → report → artifact → an answer over HTTP.

    python -m examples.demo

Each step is a command that users type; the demo prints it before it runs it. All files are in `runs/demo`.
The steps share one process, because importing TensorFlow takes several seconds.
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

import cv2
import numpy as np

from datasets.__main__ import main as run_datasets
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import DataSetItem, Sample
from segdec.images import write_png
from segdec.imaging.overlay import draw_overlay
from training.__main__ import main as run_training

DATA = Path("data/toy")
EXPERIMENT = Path(__file__).with_suffix(".toml")
RUN = Path("runs/demo")
MODEL = RUN / "model"


def main() -> None:
    """Runs the steps; a failing step ends the demo with its exit code."""
    begun = time.perf_counter()
    print("Training on a synthetic data set: about one minute on two CPU cores.")
    step("datasets", "toy", str(DATA), "--overwrite")
    step("training", "run", str(EXPERIMENT), "--fresh")
    step("training", "evaluate", str(RUN))
    step("training", "export", str(RUN), str(MODEL), "--overwrite", "--no-measure")
    item = largest_test_defect()
    with serving("--model", str(MODEL)) as url:
        answer = ask(url, item)
    draw(item, answer)
    conclude(item, answer, time.perf_counter() - begun)


def step(package: str, *words: str) -> None:
    """Runs `python -m PACKAGE WORDS…` in this process."""
    print(f"\n$ python -m {' '.join((package, *words))}", flush=True)
    {"datasets": run_datasets, "training": run_training}[package](words)


def defect_px(sample: Sample) -> int:
    """Returns the area of the defect, px."""
    return 0 if sample.mask is None else int(np.count_nonzero(sample.mask))


def largest_test_defect() -> DataSetItem:
    """Returns the test photograph with the largest defect."""
    items = load_dataset("toy", DATA).of_split("test")
    return max(items, key=lambda item: defect_px(read(item)))


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """Runs `python -m api WORDS…` on a free port of this machine; yields its URL."""
    command = ["-m", "api", *words, "--port", "0"]
    print(f"\n$ python {' '.join(command)}", flush=True)
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            if not line:
                sys.exit(process.wait())
            print(line, flush=True)
            yield line.rsplit(" ", 1)[1]
        finally:
            process.terminate()


def ask(url: str, item: DataSetItem) -> dict[str, Any]:
    """Posts a photograph; returns the service's answer."""
    print(f"\n$ curl --data-binary @{item.image_file} -H 'Content-Type: image/png' {url}/v1/predict")
    request = urllib.request.Request(
        f"{url}/v1/predict", item.image_file.read_bytes(), headers={"Content-Type": "image/png"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def draw(item: DataSetItem, answer: dict[str, Any]) -> None:
    """Writes the overlay of the predicted mask."""
    decision = answer["decision"]
    data = np.frombuffer(base64.b64decode(answer["mask"]["data"]), np.uint8)
    mask = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)
    caption = f"{decision['label']}  score {decision['score']:.3f}"
    write_png(RUN / "overlay.png", draw_overlay(read(item).image, mask, caption=caption))


def conclude(item: DataSetItem, answer: dict[str, Any], duration_s: float) -> None:
    """Prints the quality of the model and what to open."""
    figures = json.loads((RUN / "metrics.json").read_text(encoding="utf-8"))
    missed, alarms, decision = figures["false_negatives"], figures["false_positives"], answer["decision"]
    useless = figures["rating"]["level"] == "useless"
    serve = (
        "no: the model is rated useless, see the report"
        if useless
        else "make serve, then open http://127.0.0.1:8000/"
    )
    wrong = f"{missed + alarms} of {figures['images']} test photographs wrong"
    errors = f"{_count(missed, 'defect')} missed, {_count(alarms, 'false alarm')}"
    print(
        f"\nResult  AP {figures['average_precision']:.3f}; {wrong}: {errors}; after {duration_s:.0f} s\n"
        f"        {item.image_file} is {decision['label']!r}, score {decision['score']:.3f}\n"
        f"Open    {RUN}/report.html    figures and every error\n"
        f"        {RUN}/overlay.png    the mask in the answer\n"
        f"Serve   {serve}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    main()
