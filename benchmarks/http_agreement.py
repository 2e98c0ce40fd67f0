"""Do the answers over HTTP agree with the evaluation of the run that the model was exported from?

python -m api --model MODEL --port 8000
python -m benchmarks.http_agreement RUN --url http://127.0.0.1:8000

Posts every photograph of `RUN/predictions.csv` and compares label and score. Exits with 1 if any differs.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import httpx

from segdec.errors import RunError
from segdec.images import ImageFile
from segdec.runtime.cli import clean_exit
from training.data.run_data import list_dataset
from training.experiment_file import load_experiment

TOLERANCE = 1e-5


def main() -> int:
    """Prints the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compare HTTP answers with an evaluated run.")
    parser.add_argument("run", type=Path, help="run folder, evaluated")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the service (default: %(default)s)")
    options = parser.parse_args()
    with clean_exit():
        rows = read_predictions(options.run)
        differing, largest = compare(rows, photographs(options.run), options.url)
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(rows) - len(differing)} of {len(rows)} labels agree; largest score difference {largest:.1e}")
    return 1 if differing or largest > TOLERANCE else 0


def read_predictions(run: Path) -> list[dict[str, str]]:
    """Reads the rows that `python -m training evaluate` wrote."""
    with (run / "predictions.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def photographs(run: Path) -> dict[str, ImageFile]:
    """Returns the image file of each name."""
    records = list_dataset(load_experiment(run / "config.toml").data, run / "splits.txt").records
    return {record.name: record.image_file for record in records}


def compare(rows: list[dict[str, str]], paths: dict[str, ImageFile], url: str) -> tuple[list[str], float]:
    """Returns names whose labels differ, and the largest difference of a score."""
    differing, largest = [], 0.0
    with httpx.Client(base_url=url, timeout=60) as client:
        for row in rows:
            decision = ask(client, paths[row["name"]])
            largest = max(largest, abs(decision["score"] - float(row["score"])))
            if decision["label"] != row["predicted_label"]:
                differing.append(row["name"])
    return differing, largest


def ask(client: httpx.Client, photograph: ImageFile) -> dict[str, Any]:
    """Asks for the decision about one photograph.

    Raises:
        RunError: If the service cannot be reached or refuses the photograph.
    """
    try:
        response = client.post(
            "/v1/predict?mask=none", content=photograph.read_bytes(), headers={"Content-Type": "image/*"}
        )
    except httpx.TransportError as error:
        raise RunError(
            f"No answer from {client.base_url}: {error}. Start: python -m api --model …"
        ) from error
    if response.is_error:
        raise RunError(
            f"{photograph}: {response.status_code} {response.text}. Serve the model of this very run."
        )
    decision: dict[str, Any] = response.json()["decision"]
    return decision


if __name__ == "__main__":
    sys.exit(main())
