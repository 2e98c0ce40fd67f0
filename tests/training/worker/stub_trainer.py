"""Stands for `python -m training fit --resume`: takes steps, saves checkpoints, and copies a model.

    stub_trainer.py NAME ARTIFACT [STEPS [FAULT]]

It runs in the folder of a job. A fault is `error` (exit code 2 with a message), `crash` or `full disk`, at
the third step; `prints FILE` prints a file at the first one.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

name, artifact = sys.argv[1:3]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 10
fault = sys.argv[4] if len(sys.argv) > 4 else ""
run = Path("runs") / name
received = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: received.append(number))


def save(step):
    """Saves a checkpoint atomically, and the log so far."""
    checkpoints = run / "checkpoints"
    staged = checkpoints / f".{step}.tmp"
    staged.mkdir(parents=True)
    (staged / "state.index").write_bytes(step.to_bytes(4, "little"))
    staged.rename(checkpoints / f"ckpt-2-{step}")
    for old in checkpoints.glob("ckpt-2-*"):
        if int(old.name.rpartition("-")[2]) < step - 1:
            shutil.rmtree(old)


def finish(code):
    """Writes the model, the report and the metrics."""
    shutil.copytree(artifact, "model", dirs_exist_ok=True)
    (run / "report.html").write_text("<p>A report")
    (run / "metrics.json").write_text("{}")
    sys.exit(code)


assert Path("data", "manifest.jsonl").exists()
run.mkdir(parents=True, exist_ok=True)
(run / "config.toml").write_text(f'name = "{name}"\n')
first = max((int(path.name.rpartition("-")[2]) for path in run.glob("checkpoints/ckpt-*")), default=0)
print(f"begins after step {first}", flush=True)
for step in range(first + 1, steps + 1):
    time.sleep(0.03)
    with (run / "log.jsonl").open("a") as log:
        record = {"stage": "joint", "stage_index": 2, "step": step}
        log.write(json.dumps({"kind": "train", **record, "loss": 1 / step}) + "\n")
        if step % 2 == 0:
            log.write(json.dumps({"kind": "val", **record, "average_precision": None}) + "\n")
    save(step)
    if fault.startswith("prints ") and step == 1:
        print(Path(fault.removeprefix("prints ")).read_text(), flush=True)
    elif fault and step == 3 and not fault.startswith("prints "):
        if fault == "error":
            print("error: Too few parts. Add photographs.", file=sys.stderr, flush=True)
            sys.exit(2)
        if fault == "full disk":
            print("error: log.jsonl: No space left on device", file=sys.stderr, flush=True)
            sys.exit(2)
        os.kill(os.getpid(), signal.SIGKILL)
    if signal.SIGTERM in received:
        sys.exit(75)
    if signal.SIGINT in received:
        finish(130)
finish(0)
