"""A group of processes ends together. The tasks are small scripts; each group runs in its own process."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from training.distribution.task_process import PrefixedLines

ROOT = Path(__file__).parents[3]
DRIVER = """
import json, signal, sys
from training.distribution.process_group import ProcessGroup
from training.distribution.task_process import Task

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
folder, limits, *scripts = sys.argv[1:]
tasks = [
    Task(name, [sys.executable, "-c", code], {"FOLDER": folder, "TASK": name}, server=name.startswith("ps"))
    for name, code in (script.split("=", 1) for script in scripts)
]
end = ProcessGroup(tasks, sys.stdout.buffer, **json.loads(limits)).run()
print(json.dumps([end.code, end.failure, end.received]), file=sys.stderr)
"""
NOTE = """
import os, pathlib, signal, sys, time
def note(word):
    path = pathlib.Path(os.environ["FOLDER"], os.environ["TASK"] + "." + word)
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
"""
SAVE = """
def save(number, frame):
    note("saved")
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
"""
READY = "note('pid')\n"
WAIT = "time.sleep(600)\n"
SAVES_AND_WAITS = NOTE + SAVE + READY + WAIT
SERVER = NOTE + READY + WAIT
IGNORES_SIGTERM = NOTE + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + WAIT


def after(*names, then):
    """A script that waits until these tasks are ready."""
    ready = [f"{name}.pid" for name in names]
    wait = f"while not all(pathlib.Path(os.environ['FOLDER'], name).exists() for name in {ready}): "
    return NOTE + READY + wait + "time.sleep(0.02)\n" + then


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=60):
    for _ in range(seconds * 50):
        if condition():
            return
        time.sleep(0.02)
    raise TimeoutError


@dataclass
class Group:
    """A process that runs a group."""

    process: subprocess.Popen
    folder: Path
    tasks: int

    def wait_until_ready(self):
        """Returns the process ids of all tasks once each has written its own."""
        wait_for(lambda: len(self.pids()) == self.tasks)
        return self.pids()

    def pids(self):
        return [int(path.read_text()) for path in self.folder.glob("*.pid")]

    def wait(self):
        """Returns exit code, failure, received signal and output; checks that no process is left."""
        output, errors = self.process.communicate(timeout=90)
        self.check_no_process_left()
        assert self.process.returncode == 0, errors
        return *json.loads(errors.decode().splitlines()[-1]), output

    def check_no_process_left(self):
        wait_for(lambda: not any(alive(pid) for pid in self.pids()))

    def saved(self):
        return {path.stem for path in self.folder.glob("*.saved")}


@pytest.fixture
def start(tmp_path):
    groups = []

    def start(grace_s=20.0, stop_timeout_s=60.0, **scripts):
        limits = {"grace_s": grace_s, "stop_timeout_s": stop_timeout_s, "cause_timeout_s": 0.0}
        arguments = [f"{name}={code}" for name, code in scripts.items()]
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path), json.dumps(limits), *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        groups.append(Group(process, tmp_path, len(scripts)))
        return groups[-1]

    yield start
    for group in groups:
        group.process.kill()
        group.process.communicate()
        group.check_no_process_left()


def test_success_of_all_tasks(start):
    """Their lines are not mixed."""
    script = "import sys\nfor i in range(5000): print(i, 'x' * (i % 300), file=sys.{})"
    code, failure, received, output = start(
        worker0=script.format("stdout"), worker1=script.format("stderr")
    ).wait()
    assert (code, failure, received) == (0, None, None)
    lines = output.decode().splitlines()
    for name in ("worker0", "worker1"):
        own = [line.removeprefix(f"[{name}] ") for line in lines if line.startswith(f"[{name}] ")]
        assert own == [f"{i} " + "x" * (i % 300) for i in range(5000)]
    assert len(lines) == 10000


def test_failed_task_stops_the_others(start):
    fails = after("worker0", then="print('the reason'); sys.exit(3)")
    group = start(worker0=SAVES_AND_WAITS, worker1=fails)
    code, failure, _, output = group.wait()
    assert (code, failure) == (3, "worker1 exited with code 3")
    assert output == b"[worker1] the reason\n"
    assert group.saved() == {"worker0"}


def test_the_loss_of_a_peer_is_not_the_cause(start):
    leave = "signal.signal(signal.SIGUSR1, lambda *_: sys.exit({}))\n"
    lost, failing = (NOTE + leave.format(code) + READY + "signal.pause()" for code in (69, 3))
    group = start(worker0=lost, worker1=failing)
    pids = group.wait_until_ready()
    group.process.send_signal(signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGUSR1)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    group.process.send_signal(signal.SIGCONT)
    assert group.wait()[:2] == (3, "worker1 exited with code 3")


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_all_tasks_save_after_a_signal(start, number, expected):
    """Ctrl-C on a terminal reaches the group alone, so that its tasks get one signal."""
    saves = f"{NOTE}signal.signal(signal.SIGINT, lambda *_: os._exit(9))\n{SAVE}{READY}{WAIT}"
    group = start(worker0=saves, worker1=saves)
    group.wait_until_ready()
    os.killpg(group.process.pid, number)
    assert group.wait()[:3] == (expected, None, number)
    assert group.saved() == {"worker0", "worker1"}


def test_task_that_ignores_a_signal_is_killed(start):
    group = start(worker0=SAVES_AND_WAITS, worker1=IGNORES_SIGTERM, stop_timeout_s=0.3)
    group.wait_until_ready()
    group.process.terminate()
    assert group.wait()[:2] == (137, "worker1 did not stop in time and was killed by SIGKILL")


def test_second_signal_kills(start):
    stopping = NOTE + "signal.signal(signal.SIGTERM, lambda *_: note('stopping'))\n" + READY
    group = start(worker0=stopping + "while True: signal.pause()")
    group.wait_until_ready()
    group.process.terminate()
    wait_for(lambda: list(group.folder.glob("*.stopping")))
    group.process.send_signal(signal.SIGINT)
    assert group.wait()[:3] == (130, None, signal.SIGTERM)


def test_a_killed_group_leaves_no_process(start):
    group = start(worker0=IGNORES_SIGTERM, worker1=IGNORES_SIGTERM)
    group.wait_until_ready()
    group.process.kill()
    group.process.wait()
    group.check_no_process_left()


def test_servers_stop_when_the_work_is_done(start):
    group = start(
        chief=after("ps0", "ps1", then="print('done')"), ps0=SERVER, ps1=IGNORES_SIGTERM, grace_s=0.3
    )
    assert group.wait() == (0, None, None, b"[chief] done\n")


def test_servers_run_until_the_chief_has_saved(start):
    save = """
def save(number, frame):
    time.sleep(0.5)
    if not pathlib.Path(os.environ["FOLDER"], "ps0.saved").exists():
        note("saved")
        sys.exit(75)
"""
    group = start(
        chief=SAVES_AND_WAITS.replace(SAVE, save + SAVE.splitlines()[-1] + "\n"), ps0=SAVES_AND_WAITS
    )
    group.wait_until_ready()
    group.process.terminate()
    assert group.wait()[:3] == (75, None, signal.SIGTERM)
    assert group.saved() == {"chief", "ps0"}


def test_a_closed_output_stops_the_group(start):
    group = start(worker0=NOTE + SAVE + READY + "while True: print('x' * 4000)")
    group.process.stdout.read(10)
    group.process.stdout.close()
    errors = group.process.stderr.read().decode()
    group.process.wait()
    assert "BrokenPipeError" in errors
    assert group.saved() == {"worker0"}
    group.check_no_process_left()


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a", b"b\nc", b"", b"d\n"], b"> ab\n> cd\n"),
        ([b"no newline"], b"> no newline\n"),
        ([b"\xff\xfe\n\xe2\x82", b"\xac\n"], b"> \xff\xfe\n> \xe2\x82\xac\n"),
        ([b"windows\r", b"\n"], b"> windows\n"),
        ([b" 10%", b"\r", b" 20%", b"\r", b"\n"], b">  20%\n"),
        ([b"\r 10%", b"\r 20%"], b">  20%\n"),
        ([b"\n\n"], b"> \n> \n"),
        ([], b""),
    ],
)
def test_lines(chunks, expected):
    lines = PrefixedLines(b"> ")
    assert b"".join(lines.feed(chunk) for chunk in chunks) + lines.finish() == expected
