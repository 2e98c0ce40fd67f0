"""Stands for `python -m training fit --strategy multi-worker`: the chief runs `stub_trainer.py`.

    stub_group_trainer.py NAME ARTIFACT STEPS FOLDER

The processes of a group meet in FOLDER: `TASK.json` is what a process got, `stop` means that one of them got
SIGTERM, `done` that the chief has ended.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

*arguments, place = sys.argv[1:]
folder, config = Path(place), os.environ["TF_CONFIG"]
index = json.loads(config)["task"]["index"]
signal.signal(signal.SIGTERM, lambda *_: (folder / "stop").touch())
(folder / f"{index}.json").write_text(config)
if index == 0:
    trainer = subprocess.Popen([sys.executable, str(Path(__file__).with_name("stub_trainer.py")), *arguments])
    while trainer.poll() is None and not (folder / "stop").exists():
        time.sleep(0.1)
    if trainer.poll() is None:
        trainer.terminate()
    trainer.wait()
    (folder / "done").touch()
    sys.exit(trainer.returncode)
while not (folder / "done").exists():
    time.sleep(0.1)
sys.exit(75 if (folder / "stop").exists() else 0)
