"""Compares the answers over HTTP with the evaluation of the run that the model was exported from.

python -m api --model MODEL --port 8000
python -m benchmarks.http_agreement RUN --url http://127.0.0.1:8000

It sends every photograph of `RUN/predictions.csv` and compares label and score. Exits with 1 if any differs.
"""

import argparse
import csv
import sys
from pathlib import Path

import httpx

from segdec.errors import RunError
from segdec.images import ImageFile
from segdec.runtime.cli import clean_exit
from segdec.runtime.csv_cells import restore_text
from training.data.run_data import list_dataset
from training.experiment_file import load_experiment

TOLERANCE = 1e-5


def main() -> int:
    """Prints the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compares HTTP answers with an evaluated run.")
    parser.add_argument("run", type=Path, help="run folder, evaluated")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the service (default: %(default)s)")
    options = parser.parse_args()
    with clean_exit():
        with (options.run / "predictions.csv").open(newline="", encoding="utf-8") as file:
            rows = [{key: restore_text(cell) for key, cell in row.items()} for row in csv.DictReader(file)]
        items = list_dataset(load_experiment(options.run / "config.toml").data, options.run / "splits.txt")
        files = {item.name: item.image_file for item in items.items}
        differing, largest = compare(rows, files, options.url)
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(rows) - len(differing)} of {len(rows)} labels agree; maximum score difference {largest:.1e}")
    return 1 if differing or largest > TOLERANCE else 0


def compare(rows: list[dict[str, str]], files: dict[str, ImageFile], url: str) -> tuple[list[str], float]:
    """Returns the names of photographs with another label, and the maximum difference of scores.

    Raises:
        RunError: If the service is unreachable or rejects a photograph.
    """
    differing, largest = [], 0.0
    with httpx.Client(base_url=url, timeout=60, headers={"Content-Type": "image/*"}) as client:
        for row in rows:
            photograph = files[row["name"]]
            try:
                response = client.post("/v1/predict?mask=none", content=photograph.read_bytes())
            except httpx.TransportError as error:
                raise RunError(f"No answer from {url}: {error}. Start: python -m api --model …") from error
            if response.is_error:
                raise RunError(
                    f"{photograph}: {response.status_code} {response.text}. Serve the model of this run."
                )
            decision = response.json()["decision"]
            largest = max(largest, abs(decision["score"] - float(row["score"])))
            if decision["label"] != row["predicted_label"]:
                differing.append(row["name"])
    return differing, largest


if __name__ == "__main__":
    sys.exit(main())
