"""The improvement loop in one command: inspect, review, export, retrain, shadow, promote.

    python -m examples.demo_loop

A model trained on scratches only inspects parts that have holes too. Photographs, model, record and reports
are in `runs/demo_loop`; reviews use the ground truth. `--quick` trains briefly, to test the steps.
"""

import json
import shutil
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from api.accounts.keys import make_key
from api.review import export_command
from examples import demo
from examples.demo import step
from examples.synthetic_parts import Part, make_parts, write_folder
from segdec.artifact import UNLIKE_TRAINING

FOLDER = Path("runs/demo_loop")
EXPERIMENT = Path(__file__).with_suffix(".toml")
MODELS = FOLDER / "models"
RECORD = FOLDER / "record"
KNOWN = {"good": 120, "scratch": 40}
DAY = {"good": 160, "scratch": 30, "hole": 60}
NEXT_DAY = {"good": 30, "scratch": 5, "hole": 5}
UNSEEN = {"good": 120, "scratch": 40, "hole": 40}
GOOD_SHARE = "0.5"
"""Sampling rate of parts predicted good; high, because the simulated day has few parts."""
NO_VERDICT = "no verdict"
QUICK = ("--validate-every", "20", "--stages.segment.steps", "60", "--stages.decision.steps", "40")


@dataclass(frozen=True)
class Service:
    """A running service with a record, and its admin key."""

    url: str
    key: str

    def ask(
        self, method: str, path: str, body: bytes | dict[str, Any] | None = None, **headers: str
    ) -> dict[str, Any]:
        """Sends a request; returns the JSON of the answer."""
        kind = "application/json" if isinstance(body, dict) else "image/png"
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        sent = {"Content-Type": kind, "X-API-Key": self.key, **headers}
        request = urllib.request.Request(f"{self.url}{path}", data, sent, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def inspect(self, path: str, part: Part) -> dict[str, Any] | None:
        """Sends a photograph; returns None if it is rejected because it is unlike those of the training."""
        try:
            return self.ask("POST", path, part.image)
        except HTTPError as error:
            problem = json.load(error)
            if problem["code"] != UNLIKE_TRAINING:
                sys.exit(f"Error: {path}: {problem['detail']}")
            return None


def main() -> None:
    """Runs the steps; a failing step ends the demo with its exit code."""
    begun = time.perf_counter()
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_folder(FOLDER / "known", make_parts(KNOWN, seed=0))
    quick = "--quick" in sys.argv[1:]
    every = 5 if quick else 1
    unseen = make_parts(UNSEEN, seed=3)[::every]
    run = train(QUICK if quick else ())
    with serving() as service:
        before = count_errors(service, unseen)
        review(service, inspect(service, make_parts(DAY, seed=1)[::every]))
        words = ["--out", str(FOLDER / "reviewed"), "--record-folder", str(RECORD)]
        announce(f"python -m api export-reviewed {' '.join(words)}")
        export_command.run(words)
        model = str(MODELS / "parts" / "1")
        words = ["--reviewed", str(FOLDER / "reviewed"), "--parent", model]
        step("training", "retrain", str(run), *words, *(["--force"] if quick else []))
        shadow(service, make_parts(NEXT_DAY, seed=2)[::every])
        announce("POST /v1/admin/models/parts/promote")
        service.ask("POST", "/v1/admin/models/parts/promote")
        after = count_errors(service, unseen)
    conclude(Counter(part.kind for part in unseen), before, after, time.perf_counter() - begun)
    if sum(after.values()) >= sum(before.values()) and not quick:
        sys.exit("Error: the next version is not better than the first one.")


def announce(line: str) -> None:
    """Prints the current step."""
    print(f"\n$ {line}", flush=True)


def train(flags: Sequence[str]) -> Path:
    """Trains and exports the first model; returns its run folder."""
    run = FOLDER / "runs" / "parts"
    step("training", "run", str(EXPERIMENT), *flags)
    step("training", "evaluate", str(run))
    step("training", "export", str(run), str(MODELS / "parts" / "1"))
    return run


@contextmanager
def serving() -> Iterator[Service]:
    """Serves the models on a free port of this machine, with a record."""
    key, line = make_key("demo")
    keys = FOLDER / "admin_keys"
    keys.write_text(line, encoding="utf-8")
    words = ["--models", str(MODELS), "--admin-keys", str(keys), "--record", "required"]
    words += ["--record-folder", str(RECORD), "--record-good-share", GOOD_SHARE, "--record-near", "1"]
    with demo.serving(*words) as url:
        yield Service(url, key)


def count_errors(service: Service, parts: Sequence[Part]) -> Counter[str]:
    """Predicts parts that are in no training set; returns the number of errors of each kind, and of parts
    without a verdict.
    """
    wrong: Counter[str] = Counter()
    for part in parts:
        answer = service.inspect("/v1/predict?mask=none", part)
        if answer is None:
            wrong[NO_VERDICT] += 1
        else:
            wrong[part.kind] += answer["decision"]["label"] != part.label
    return wrong


def inspect(service: Service, parts: Sequence[Part]) -> dict[str, Part]:
    """Inspects the parts; returns them by `part_id`."""
    announce(f"POST /v1/inspect?station=demo&part_id=… of {len(parts)} parts")
    by_id = {f"day1-{number}": part for number, part in enumerate(parts)}
    answers = [service.inspect(f"/v1/inspect?station=demo&part_id={name}", by_id[name]) for name in by_id]
    print_without_verdict(answers.count(None))
    return by_id


def print_without_verdict(count: int) -> None:
    """Prints how many parts got no verdict, unless there are none."""
    if count:
        print(f"{count} photographs are unlike those of the training (HTTP 422): no verdict.")


def review(service: Service, parts: dict[str, Part]) -> None:
    """Reviews all queued parts with the ground truth."""
    announce("POST /v1/review/next, PUT /v1/records/{id}/review until the queue is empty")
    why: Counter[str] = Counter()
    while tasks := service.ask("POST", "/v1/review/next", {"session": "demo", "count": 5})["tasks"]:
        for task in tasks:
            record = task["record"]
            verdict = {**parts[record["part_id"]].review(), "session": "demo"}
            path, seen = f"/v1/records/{record['record_id']}/review", f'"{record["revision"]}"'
            service.ask("PUT", path, verdict, **{"If-Match": seen})
            why[task["why"]] += 1
    print(f"Reviewed {why.total()} of {len(parts)}: {', '.join(f'{n} {name}' for name, n in why.items())}.")


def shadow(service: Service, parts: Sequence[Part]) -> None:
    """Runs the new version in shadow mode on another batch; prints how often it differs."""
    announce('POST /v1/admin/models/parts/candidate {"version": "2"}')
    service.ask("POST", "/v1/admin/models/parts/candidate", {"version": "2"})
    announce(f"POST /v1/inspect of {len(parts)} parts, then GET /v1/review/candidates")
    inspected = 0
    for number, part in enumerate(parts):
        answer = service.inspect(f"/v1/inspect?station=demo&part_id=day2-{number}", part)
        inspected += answer is not None
        report = candidate(service)
        while report["answered"] + sum(report["skipped"].values()) < inspected:
            time.sleep(0.05)  # the candidate runs while the service is idle
            report = candidate(service)
    print_without_verdict(len(parts) - inspected)
    skipped = sum(report["skipped"].values())
    print(
        f"The candidate answered {report['answered']} and skipped {skipped}; "
        f"{report['differing']} answers differ from version {report['serving']}."
    )


def candidate(service: Service) -> dict[str, Any]:
    """Returns the report on the candidate."""
    (report,) = service.ask("GET", "/v1/review/candidates")["candidates"]
    found: dict[str, Any] = report
    return found


def conclude(parts: Counter[str], before: Counter[str], after: Counter[str], duration_s: float) -> None:
    """Prints the errors of both versions on parts that are in no training set."""
    print(f"\nResult  after {duration_s:.0f} s, errors on {parts.total()} new parts, version 1 → version 2:")
    for kind, text in (("scratch", "scratches missed"), ("hole", "holes missed"), ("good", "false alarms")):
        print(f"        {text:<17} {before[kind]:>3} of {parts[kind]} → {after[kind]:>3}")
    if before[NO_VERDICT] or after[NO_VERDICT]:
        print(f"        {NO_VERDICT:<17} {before[NO_VERDICT]:>3} of {parts.total()} → {after[NO_VERDICT]:>3}")
    print(f"Files   {FOLDER}/runs/parts_2/report.html, {MODELS}/parts/2, {FOLDER}/record; see docs/loop.md.")


if __name__ == "__main__":
    main()
