"""Runs `python -m training` in forked processes that may be killed or starved of disk: one request a line.

TensorFlow is imported once, its runtime started in the forked processes only. A request is a JSON object:
`arguments`, and at most one of

- `kill_at`: `module:Class.method`, killed at the `count`-th call; `when` is `before`, `after`, or `torn`:
  after it, with the files half written whose path is the call's first argument
- `kill_at_file`: the n-th time that Python opens, renames, makes or removes something below `runs`
- `kill_after_s`: seconds
- `file_limit`: largest size of a file, bytes
- `interrupt_at`: as `kill_at`, but asked to stop as by Ctrl-C, after the `count`-th call

With `tick_s` each look at the clock of `training fit` takes so many seconds, whatever the machine does.

The answer is a JSON object: `signal`, `code` and `errors`, what the process printed on stderr.
"""

import functools
import importlib
import itertools
import json
import os
import resource
import signal
import sys
import tempfile
import threading
from pathlib import Path

LONGEST_S = 600
FILE_EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def tear(prefix):
    """Cuts the files of a checkpoint in the middle."""
    for path in Path(prefix).parent.iterdir():
        os.truncate(path, path.stat().st_size // 2)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def tick(seconds):
    """Makes time pass by being looked at."""
    ticks = itertools.count()
    importlib.import_module("training.fit.command").clock = lambda: seconds * next(ticks)


def kill_at(place, count, when, end=die):
    """Replaces a method by one that ends the process at its `count`-th call."""
    module, dotted = place.split(":")
    *owners, name = dotted.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    method, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(1)
        if len(calls) == count and when == "before":
            end()
        value = method(*args, **kwargs)
        if len(calls) == count:
            if when == "torn":
                tear(args[1])
            end()
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
            die()

    sys.addaudithook(watch)


def prepare(request):
    if "kill_at" in request:
        kill_at(request["kill_at"], request["count"], request["when"])
    if "kill_at_file" in request:
        kill_at_file(request["kill_at_file"], request["runs"])
    if "interrupt_at" in request:
        kill_at(request["interrupt_at"], request["count"], "after", interrupt)
    if "tick_s" in request:
        tick(request["tick_s"])
    if "kill_after_s" in request:
        timer = threading.Timer(request["kill_after_s"], die)
        timer.daemon = True
        timer.start()
    if "file_limit" in request:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_limit"], request["file_limit"]))


def run_forked(request):
    """Never returns: the forked process ends here."""
    from training.__main__ import main

    code = 1
    try:
        signal.alarm(LONGEST_S)
        prepare(request)
        main(request["arguments"])
        code = 0
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(request):
    with tempfile.TemporaryFile() as errors:
        process = os.fork()
        if process == 0:
            os.dup2(errors.fileno(), 2)
            os.dup2(2, 1)
            run_forked(request)
        _, status = os.waitpid(process, 0)
        errors.seek(0)
        printed = errors.read().decode("utf-8", "replace")
    signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return {"signal": signalled, "code": os.waitstatus_to_exitcode(status), "errors": printed}


def serve():
    from segdec.cli_runtime import quiet_tensorflow

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
    quiet_tensorflow(trains=True)
    importlib.import_module("training.trainer")
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
