"""Faults of a training run: killed, without disk space, or interrupted, at a chosen moment.

- `kill_at`: `module:Class.method`, killed at the `count`-th call; `when` is `before`, `after`, or `torn`:
  after it, with the files half written whose path is the call's first argument
- `kill_at_file`: the n-th time that Python opens, renames, makes or removes something below `runs`
- `file_limit`: largest size of a file, bytes
- `interrupt_at`: as `kill_at`, but asked to stop as by Ctrl-C, after the `count`-th call
- `terminate_at`: as `interrupt_at`, but by SIGTERM

With `tick_s` each look at the clock of `training fit` takes so many seconds, whatever the machine does. With
`compact` the preset of that name has these widths. With `replicas` so many logical CPU devices
stand for the GPUs of `training fit`. With `print_weights` a trainer prints a digest of its weights after
each stage, before it gets the best ones.
"""

import functools
import hashlib
import importlib
import itertools
import os
import resource
import signal
import sys
from pathlib import Path

FILE_EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}


def end_by(number):
    os.kill(os.getpid(), number)


def tear(prefix):
    """Cuts the files of a checkpoint in the middle."""
    for path in Path(prefix).parent.iterdir():
        os.truncate(path, path.stat().st_size // 2)


def kill_at(place, count, when, number=signal.SIGKILL):
    """Replaces a method by one that sends a signal to this process at its `count`-th call."""
    module, dotted = place.split(":")
    *owners, name = dotted.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    method, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(1)
        if len(calls) == count and when == "before":
            end_by(number)
        value = method(*args, **kwargs)
        if len(calls) == count:
            if when == "torn":
                tear(args[1])
            end_by(number)
        return value

    setattr(owner, name, counted)


def kill_at_file(count, folder):
    """Kills the process when Python is about to touch a file below `folder` for the `count`-th time."""
    touched = []

    def watch(event, args):
        if event not in FILE_EVENTS or not str(args[0]).startswith(folder):
            return
        if event == "open" and args[1] in ("r", "rb"):
            return
        touched.append(event)
        if len(touched) == count:
            end_by(signal.SIGKILL)

    sys.addaudithook(watch)


def replace_gpus(count):
    """Lets `fit` train on logical CPU devices as on so many GPUs."""
    devices = f"cpu:{count}"
    importlib.import_module("training.distribution.devices").find_devices(devices)
    importlib.import_module("training.fit.command").count_replicas = lambda: count
    choice = importlib.import_module("training.fit.experiment_choice").ExperimentChoice
    method = choice.config
    choice.config = lambda self, steps, **others: method(self, steps, devices=devices, **others)


def print_weights():
    """Lets each trainer print a digest of its own weights after each stage."""
    trainer = importlib.import_module("training.trainer").Trainer
    method = trainer._advance

    def advance(self, index):
        digest = hashlib.sha256()
        for weight in self.train_state.network.weights:
            digest.update(weight.numpy().tobytes())
        print(
            f"weights of stage {index} after {self.state.steps_taken} steps: {digest.hexdigest()}", flush=True
        )
        method(self, index)

    trainer._advance = advance


def prepare(faults):
    """Applies the faults to this process."""
    if "kill_at" in faults:
        kill_at(faults["kill_at"], faults["count"], faults["when"])
    if "kill_at_file" in faults:
        kill_at_file(faults["kill_at_file"], faults["runs"])
    if "interrupt_at" in faults:
        kill_at(faults["interrupt_at"], faults["count"], "after", signal.SIGINT)
    if "terminate_at" in faults:
        kill_at(faults["terminate_at"], faults["count"], "after", signal.SIGTERM)
    if "tick_s" in faults:
        ticks = itertools.count()
        importlib.import_module("training.fit.command").clock = lambda: faults["tick_s"] * next(ticks)
    if "compact" in faults:
        importlib.import_module("segdec.config").PRESETS["compact"].update(faults["compact"])
    if "print_weights" in faults:
        print_weights()
    if "replicas" in faults:
        replace_gpus(faults["replicas"])
    if "file_limit" in faults:
        resource.setrlimit(resource.RLIMIT_FSIZE, (faults["file_limit"], faults["file_limit"]))
