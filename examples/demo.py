"""The whole line in one command: toy photographs → training → report → artifact → an answer over HTTP.

    python -m examples.demo

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

import cv2
import numpy as np

from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import Record, Sample
from segdec.images import write_png
from segdec.imaging.overlay import draw_overlay

DATA = Path("data/toy")
RUN = Path("runs/demo")
MODEL = RUN / "model"
STEPS = {"segment": 480, "decision": 130, "joint": 90}
"""Of each stage: two fifths of the experiment's, which reach a test AP of about 0.93 in place of 0.996."""


def main() -> None:
    """Runs the steps; any that fails ends the demo with its exit code."""
    begun = time.perf_counter()
    print("Training takes two fifths of its experiment's steps here: two to four minutes on two cores.")
    step("datasets", "toy", str(DATA), "--count", "400", "--overwrite")
    shorter = [word for stage, count in STEPS.items() for word in (f"--stages.{stage}.steps", str(count))]
    experiment = "training/experiments/toy_compact.toml"
    step("training", "run", experiment, "--name", RUN.name, "--fresh", "--validate-every", "100", *shorter)
    step("training", "evaluate", str(RUN))
    step("training", "export", str(RUN), str(MODEL), "--overwrite")
    record = largest_test_defect()
    with service() as url:
        answer = ask(url, record)
    draw(record, answer)
    conclude(record, answer, time.perf_counter() - begun)


def step(*words: str) -> None:
    """Runs `python -m WORDS…`."""
    print(f"\n$ python -m {' '.join(words)}", flush=True)
    finished = subprocess.run([sys.executable, "-m", *words], check=False)
    if finished.returncode:
        sys.exit(finished.returncode)


def defect_px(sample: Sample) -> int:
    """Returns the area of the defect, px."""
    return 0 if sample.mask is None else int(np.count_nonzero(sample.mask))


def largest_test_defect() -> Record:
    """Finds the photograph with the largest defect among those that the training never saw."""
    records = load_dataset("toy", DATA).of_split("test")
    return max(records, key=lambda record: defect_px(read(record)))


@contextmanager
def service() -> Iterator[str]:
    """Serves the model on a free port of this machine; gives its URL."""
    words = ["api", "--model", str(MODEL), "--port", "0"]
    print(f"\n$ python -m {' '.join(words)}", flush=True)
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            if not line:
                sys.exit(process.wait())
            print(line)
            yield line.rsplit(" ", 1)[1]
        finally:
            process.terminate()


def ask(url: str, record: Record) -> dict[str, Any]:
    """Posts a photograph and returns the service's answer."""
    print(f"\n$ curl --data-binary @{record.image_file} -H 'Content-Type: image/png' {url}/v1/predict")
    request = urllib.request.Request(
        f"{url}/v1/predict", record.image_file.read_bytes(), headers={"Content-Type": "image/png"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def draw(record: Record, answer: dict[str, Any]) -> None:
    """Writes the overlay."""
    decision = answer["decision"]
    data = np.frombuffer(base64.b64decode(answer["mask"]["data"]), np.uint8)
    mask = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)
    caption = f"{decision['label']}  score {decision['score']:.3f}"
    write_png(RUN / "overlay.png", draw_overlay(read(record).image, mask, caption=caption))


def conclude(record: Record, answer: dict[str, Any], duration_s: float) -> None:
    """Prints what came out, where it lies and what to do next."""
    figures = json.loads((RUN / "metrics.json").read_text(encoding="utf-8"))
    decision, errors = answer["decision"], figures["false_positives"] + figures["false_negatives"]
    print(
        f"\nResult  after {duration_s:.0f} s: test AP {figures['average_precision']:.3f}, {errors} errors of "
        f"{figures['images']}; {record.image_file} is {decision['label']!r}, score {decision['score']:.3f}.\n"
        f"Files   {RUN}/report.html (figures), {RUN}/overlay.png (that answer), {MODEL} (the artifact).\n"
        'Next    `make serve` serves that artifact; README.md, "Your own photographs", trains on yours.'
    )


if __name__ == "__main__":
    main()
