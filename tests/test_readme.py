"""Every command of a page of the documentation is run here, or stands below with the reason why not.

`make test` holds that every command is known and takes its flags, and runs those that take a second; all of
them in their order, from photographs to an answer of the service, are run by `make test-all`.
"""

import argparse
import importlib
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import cv2
import httpx
import numpy as np
import pytest

from datasets.layouts.toy import write_toy
from segdec.encoders import ENCODERS
from tests import forked

ROOT = Path(__file__).parents[1]
SERVING = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
ELSEWHERE = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))["PAGES"].values()
PAGES = [*(ROOT / name for name in ELSEWHERE), *sorted((ROOT / "docs").glob("*.md"))]
"""Those of the documentation site, the README first."""
WRAPPED_AT = 120
SHELLS, NO_SHELLS = {"bash", "sh"}, {"", "python", "json", "yaml", "ini"}

NOT_RUN = {
    "make demo": "five minutes; .ci/run runs it",
    "make test": "this is what runs the tests",
    "make install GPU=1": "gigabytes of CUDA; see tests/test_demo.py",
    "make bench-serving": "half an hour of measuring; see tests/benchmarks",
    "python -m api --models models --admin-keys keys.txt --port 8000": "needs the key printed before it; "
    "see tests/api/models/test_reload.py",
    'curl -X POST -H "Authorization: Bearer $KEY" '
    "http://127.0.0.1:8000/v1/admin/models/parts/reload": "as above",
    "python -m api --model models/parts --api-keys keys.txt --port 8000": "needs the key printed before it; "
    "see tests/api/routes/test_keys.py",
    'curl --data-binary @part.png -H "Content-Type: image/png" -H "Authorization: Bearer $KEY" '
    "http://127.0.0.1:8000/v1/predict": "as above",
    "pip install -e '.[openvino]'": "installs packages",
    "python -m training run training/experiments/folder_mobilenet.toml --data.root data/parts "
    "--data.skip-broken": "as without the flag; see tests/training/data/test_run_data.py",
    "python -m training run training/experiments/folder_compact.toml --data.root data/parts --batch-size 16 "
    "--devices cpu:2 --name mirrored": "see tests/training/test_encoder_runs.py",
    "python -m training export runs/parts models/fast --engines tensorflow openvino": "a minute of "
    "converting; see tests/training/test_export.py",
    "make serve MODEL=models/parts": "python -m api, which is run, after an install",
    "make serve MODEL=models/kolektor": "as above",
    "python -m benchmarks.http_agreement runs/fold_0": "needs photographs; see tests/benchmarks",
    "python -m datasets split kolektor data/kolektorsdd folds --folds 5": "needs photographs",
    "python -m training evaluate runs/fold_0": "needs photographs",
    "python -m training join runs/fold_0 runs/fold_1 runs/fold_2 runs/fold_3 runs/fold_4 --out joined": "as "
    "above",
    "python -m training export runs/fold_0 models/kolektor": "needs photographs",
    "pip install '.[tensorflow]' --group serve -c constraints.txt": "installs packages",
    "docker build -t segdec .": "needs a Docker engine",
    "python -m segdec watch /srv/camera --url http://127.0.0.1:8000 --station line3-cam1 --part-pattern "
    "'^(?P<part>[^_]+)_'": "ends when it is told to; see tests/segdec/command_line/test_watch.py",
    "docker run --read-only --tmpfs /tmp -p 8000:8000 -v ./models/parts:/models:ro segdec": "as above",
    "python -m benchmarks.asynchronous_training": "minutes of training; see tests/benchmarks",
    "python -m benchmarks.step_graph": "a minute of tracing; see tests/benchmarks",
    "python -m benchmarks.inference.speed --run runs/parts --batches 1 --peers": "minutes of measuring; see "
    "tests/benchmarks",
    "make bench": "most of an hour of measuring; see tests/benchmarks",
    "python -m datasets supervision kolektor2 data/kolektorsdd2 split_16.pyb supervision.txt": "needs the "
    "published set",
    "python -m training calibrate runs/parts --folds 4": "four trainings; see test_calibrate.py",
    "python -m training evaluate runs/parts_0": "a fold is a run like the others; see test_aggregation.py",
    "python -m training evaluate runs/parts_1": "as above",
    "python -m training join runs/parts_0 runs/parts_1 --out cross_validated": "as above",
    "python -m training evaluate runs/encoder_0": "as above",
    "python -m training join runs/encoder_0 runs/encoder_1 runs/encoder_2 runs/encoder_3 runs/encoder_4 "
    "--out joined_encoder": "as above",
    "python -m benchmarks.ablation training/experiments/toy_compact.toml "
    "benchmarks/ablations/toy.toml": "an hour of training; see tests/benchmarks",
    "python -m training run training/experiments/toy_compact.toml": "minutes of training",
    "python -m training fit data/toy --minutes 10": "as above; see tests/training/fit",
    "python -m training fit data/dagm/Class1 --minutes 10 --name dagm": "needs photographs",
    "python -m training fit data/kolektorsdd --minutes 10": "as above",
    "python -m training evaluate runs/toy_compact": "needs the run before it",
    "python -m training export runs/toy_compact models/toy": "as above",
    "python -m benchmarks.toy_difficulty --run runs/toy_compact": "as above; see tests/benchmarks",
    "python -m training run training/experiments/folder_mobilenet.toml --data.root data/parts "
    "--name by_hand": "what stands in for `fit` does the same",
    "python -m training evaluate runs/by_hand": "as above",
    "python -m training export runs/by_hand models/by_hand": "as above",
    "python -m examples.result_picture models/toy data/toy docs/result.jpg": "needs it; see tests/examples",
    "make install": "installs packages; .ci/run does",
    "make check": "minutes of checking; .ci/run runs it",
    "make test-all": "this is what runs the tests",
    "make test-loaded": "as above",
    ".venv/bin/pre-commit install": "changes the checkout's hooks",
    "python3 -m venv .renew": "installs packages",
    ".renew/bin/pip install --upgrade pip": "as above",
    ".renew/bin/pip install -e '.[tensorflow,openvino,client,batch,ray]' --group dev --group mlflow": "as "
    "above",
    ".renew/bin/pip freeze --exclude-editable --all": "as above",
    "docker build --target serve -t segdec:0.1.0 .": "needs a Docker engine; see test_deploy.py",
    "MODEL=/srv/models/parts docker compose -f deploy/compose/compose.yaml up --detach --wait": "as above",
    "docker compose --env-file /srv/segdec.env -f deploy/compose/compose.yaml -f deploy/compose/record.yaml "
    "up --detach --wait": "as above",
    "cp deploy/nginx/segdec.conf /etc/nginx/conf.d/ && nginx -s reload": "changes the machine; see "
    "test_replicas.py",
    "kubectl create namespace inspection": "needs a cluster; see test_deploy.py",
    "kubectl --namespace inspection apply --kustomize deploy/kubernetes/overlays/cpu": "as above",
    "kubectl --namespace inspection apply -f deploy/kubeflow/multi-worker.yaml": "as above",
    "kubectl --namespace inspection apply -f deploy/kubernetes/training/eight-gpus.yaml": "as above",
    "uv pip compile pyproject.toml --extra tensorflow --group serve --group record "
    "--constraint constraints.txt --generate-hashes --python-version 3.11 --python-platform "
    "x86_64-manylinux_2_28 --no-header --no-annotate -o deploy/image/serve.txt": "asks a package index; see "
    "test_deploy.py",
    "python -m api --model models/parts --port 8000 --record required": "see tests/api/records",
    'curl --data-binary @part.png -H "Content-Type: image/png" '
    '"http://127.0.0.1:8000/v1/inspect?station=line3-cam1&part_id=A17"': "see tests/api/routes/"
    "test_inspect.py",
    "curl -X PUT http://127.0.0.1:8000/v1/records/17/review -H 'If-Match: \"0\"' "
    '-H "Content-Type: application/json" -d \'{"label": "scratch", "reason": "at the edge", '
    '"reviewer": "Ada", "session": "4f1c"}\'': "see tests/api/routes/test_review.py",
    "python -m api --model models/parts --port 8000 --record required --record-shifts 06:00,14:00,22:00 "
    "--record-zone Europe/Berlin": "see tests/api/routes/test_line.py",
    "chromium --kiosk --autoplay-policy=no-user-gesture-required "
    '"http://127.0.0.1:8000/line?station=line3-cam1&sound=on"': "see tests/browser/test_line.py",
    "python -m api export-reviewed --out reviewed --record-folder record": "needs a record; see "
    "tests/api/records/review/test_reviewed_export.py",
    "python -m training retrain runs/parts --reviewed reviewed --parent models/parts/1": "needs what that "
    "exports; see tests/training/retrain",
    "mv models/parts parts_1 && mkdir models/parts && mv parts_1 models/parts/1": "what follows needs "
    "the model where it was",
    "python -m api --models models --port 8000 --record required --admin-keys keys.txt": "needs the "
    "key printed before it; see tests/api/models/test_reload.py",
    'ADMIN="Authorization: Bearer $KEY"; PARTS=http://127.0.0.1:8000/v1/admin/models/parts': "see "
    "examples/demo_loop.py and tests/api/models/test_promotion.py",
    'curl -X POST -H "$ADMIN" -H "Content-Type: application/json" '
    '-d \'{"version": "2"}\' $PARTS/candidate': "as above",
    'curl -H "$ADMIN" http://127.0.0.1:8000/v1/review/candidates': "as above",
    'curl -X POST -H "$ADMIN" $PARTS/promote': "as above",
    'curl -X POST -H "$ADMIN" $PARTS/rollback': "as above",
    "curl -F file=@part.png -F station=line3-cam1 -F part_id=A17 -F 'metadata={\"lot\": 7}' "
    "http://127.0.0.1:8000/v1/inspect": "see tests/api/routes/test_inspect.py",
    "python -m api --model models/parts --record required --outbox-webhook https://mes.plant/events "
    "--outbox-webhook-secrets secrets.txt --outbox-mqtt mqtts://broker.plant/plant/line3 "
    "--outbox-mqtt-login login.txt --outbox-jsonl /var/lib/segdec/events.jsonl --opcua-endpoint "
    "opc.tcp://0.0.0.0:4840/segdec": "see tests/api/delivery",
    'curl -X POST -H "X-API-Key: $KEY" http://127.0.0.1:8000/v1/admin/outbox/17/retry': "see "
    "tests/api/routes/test_outbox.py",
    'curl -X POST -H "X-API-Key: $KEY" http://127.0.0.1:8000/v1/admin/outbox/17/discard': "as above",
    'curl -X POST -H "X-API-Key: $KEY" "http://127.0.0.1:8000/v1/admin/outbox/retry?sink=webhook"': "as "
    "above",
    'echo "whsec_$(openssl rand -base64 32)" > secrets.txt': "see tests/segdec/test_webhooks.py",
    "mkdir backup": "see tests/api/records/test_backup.py",
    "sqlite3 record/record.db \"VACUUM INTO 'backup/record.db'\"": "as above",
    "cp -a record/pictures backup/": "as above",
    "echo 'setuptools>=77' | uv pip compile - --constraint constraints.txt --generate-hashes --no-header "
    "--no-annotate -o deploy/image/build.txt": "as above",
}
NOT_RUN_PREFIXES = {
    "python -m training run training/experiments/kolektor_compact.toml": "needs photographs",
    "python -m training run training/experiments/folder_mobilenet.toml --data.root data/parts "
    "--data.splits halves": "a fold is a run like the others",
    "python -m training run training/experiments/folder_mobilenet.toml --data.root data/parts "
    "--augmentation.synthetic": "a run like the others; see tests/training/test_trainer.py",
    "python -m training run training/experiments/kolektor_mobilenet.toml": "needs photographs, and weights",
    "python -m benchmarks.thresholds": "needs runs on photographs; see tests/benchmarks",
    "python -m benchmarks.encoder_comparison": "hours of training; see tests/benchmarks",
    "python -m benchmarks.few_defects": "as above",
    "docker run --detach": "needs a Docker engine",
    "docker run --gpus all": "as above",
    "kubectl --namespace inspection patch job segdec-eight-gpus": "needs a cluster",
}

PORT = "--port 8000"
URL = "http://127.0.0.1:8000"

TINY = (
    "--stages.segment.steps 2 --stages.decision.steps 2 --stages.joint.steps 1 "
    "--input.height 32 --input.width 32 --network.feature-width 8"
)
STAND_INS = {
    "python -m training fit data/parts --minutes 10": (  # ten minutes; see tests/training/fit
        "python -m training run training/experiments/folder_mobilenet.toml --data.root data/parts",
        "python -m training evaluate runs/parts",
        "python -m training export runs/parts models/parts",
    ),
    "python -m training join runs/by_hand runs/packed --out joined": (
        "python -m training join runs/parts runs/packed --out joined",
    ),
    "python -m training compare runs/by_hand runs/packed": (
        "python -m training compare runs/parts runs/packed",
    ),
}
"""What leaves the same behind in less time."""

SHORTER = {f"python -m training {command}": TINY for command in ("check", "run", "launch")}


def blocks():
    """Language and text of each fenced block."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, flags=re.DOTALL | re.MULTILINE)


def commands():
    """The lines of the shell blocks, continued ones joined, comments dropped."""
    texts = [text for language, text in blocks() if language in SHELLS]
    lines = "".join(texts).replace("\\\n", " ").splitlines()
    stripped = (re.sub(r"\s+", " ", re.split(r"\s+#\s", line)[0]).strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def runnable():
    """In their order; what asks or starts the service once for each time it stands there, the rest once."""
    lines = [
        line
        for line in commands()
        if line not in NOT_RUN and not any(line.startswith(p) for p in NOT_RUN_PREFIXES)
    ]
    return [line for n, line in enumerate(lines) if PORT in line or URL in line or line not in lines[:n]]


def test_every_block_is_known():
    """Commands in a block of another name would escape."""
    assert {language for language, _ in blocks()} <= SHELLS | NO_SHELLS


def test_commands_named_in_the_text_exist():
    """Those in a line of text are not run; what they name is there."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = [words.split() for text in texts for words in re.findall(r"`((?:make|python) [^`]+)`", text)]
    assert len(named) > 20
    for words in named:
        if words[0] == "make":
            assert words[1] in targets, words
        elif words[1] == "-m":
            assert find_spec(words[2]), words
        else:
            assert (ROOT / words[1]).is_file(), words


def product_commands():
    """Module, subcommand and flags of the commands of the product that have some, run or not."""
    for line in commands():
        words = shlex.split(line)
        flags = {word for word in words if word.startswith("--")}
        if flags and words[:2] == ["python", "-m"] and (ROOT / words[2] / "__main__.py").is_file():
            yield words[2], *(word for word in words[3:4] if not word.startswith("-")), flags


def test_commands_take_their_flags(monkeypatch, capsys):
    """Without starting one: its help names them."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    known = {}
    for *command, flags in product_commands():
        if tuple(command) not in known:
            monkeypatch.setattr(sys, "argv", [*command, "--help"])
            with pytest.raises(SystemExit):
                importlib.import_module(f"{command[0]}.__main__").main()
            known[tuple(command)] = set(re.findall(r"--[\w.-]+", capsys.readouterr().out))
        others = known["training", "run"] if command == ["training", "launch"] else set()  # as its help says
        assert flags <= known[tuple(command)] | others, command
    assert len(known) > 8


def test_lines_are_wrapped():
    """But for tables, commands, figures that a benchmark writes, and words that are longer than a line."""
    pages = [*PAGES, ROOT / "deploy" / "grafana" / "README.md"]
    for page in pages:
        text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"<!-- figures.*<!-- end of figures -->", "", text, flags=re.DOTALL)
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
        long = [
            line for line in lines if len(line) > WRAPPED_AT and max(map(len, line.split())) < WRAPPED_AT - 20
        ]
        assert long == [], page


def test_reasons_are_up_to_date():
    assert {*NOT_RUN, *STAND_INS} <= set(commands())
    assert all(any(line.startswith(prefix) for line in commands()) for prefix in NOT_RUN_PREFIXES)


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like the checkout, with a few small photographs as a user would lay them out."""
    for name in ("segdec", "datasets", "training", "api", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    write_toy(tmp_path / "data" / "parts", 24, size=32)
    shutil.copy(next((tmp_path / "data" / "parts" / "defect").iterdir()), tmp_path / "part.png")
    return tmp_path


@pytest.fixture
def imagenet(tmp_path, monkeypatch):
    """Stands for the weights of MobileNet that Keras has downloaded."""
    file = tmp_path / "keras" / "models" / ENCODERS["mobilenet"].weights_file
    file.parent.mkdir(parents=True)
    network = "keras.applications.MobileNet(weights=None, include_top=False)"
    save = f"import keras, sys; {network}.save(sys.argv[1])"
    subprocess.run([sys.executable, "-c", save, file], check=True, timeout=300)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))


def run(command, folder):
    shorter = next((extra for start, extra in SHORTER.items() if command.startswith(start)), "")
    words = shlex.split(f"{command} {shorter}")
    if words[:2] == ["python", "-m"] and "mobilenet" not in command:  # Keras reads KERAS_HOME when imported
        return forked.run(*words[2:], folder=folder)
    if words[0] == "python":
        words[0] = sys.executable
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def post(command, folder):
    """Does what a curl command says, on machines without curl too; returns the labels in the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-binary")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-F", dest="form", action="append", default=[])
    parser.add_argument("-o", dest="out")
    parser.add_argument("url")
    words = parser.parse_args(shlex.split(command)[1:])
    headers = dict(header.split(": ") for header in words.headers)
    if words.form:
        files = [part.partition("=@") for part in words.form]
        sent = {"files": [(field, (file, (folder / file).read_bytes())) for field, _, file in files]}
    else:
        sent = {"content": (folder / words.data_binary.removeprefix("@")).read_bytes()}
    response = httpx.post(words.url, headers=headers, **sent)
    assert response.status_code == 200, response.text
    if words.out:
        assert read_png(response.content).shape[:2] == (32, 32)
        return [response.headers["X-Segdec-Label"]]
    answers = [item["answer"] for item in response.json().get("items", [])] or [response.json()]
    return [answer["decision"]["label"] for answer in answers]


def read_png(content):
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)


def start_service(command, folder):
    """Starts the service on a port that is free; returns it and its URL."""
    words = [sys.executable, *shlex.split(command.replace(PORT, "--port 0"))[1:]]
    service = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    line = service.stdout.readline()
    assert line.startswith("Serving")
    return service, line.split()[-1]


def stop(service):
    if service is not None:
        service.terminate()
        assert service.wait(timeout=60) == 0
        service.stdout.close()


def python_example(word):
    """The one example of the page of the service in which `word` stands."""
    (found,) = [text for text in re.findall(r"```python\n(.*?)```", SERVING, flags=re.DOTALL) if word in text]
    return found


@pytest.mark.slow
def test_commands_of_the_data_sets_work(checkout):
    """The first one of each kind; `pack` loads TensorFlow."""
    lines = [line for line in runnable() if line.startswith("python -m datasets")]
    first = {line.split()[3]: line for line in reversed(lines)}
    assert first.keys() == {"inspect", "split", "toy", "pack"}
    for command in (line for kind, line in first.items() if kind != "pack"):
        result = run(command, checkout)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"


@pytest.mark.slow
@pytest.mark.usefixtures("imagenet")
def test_commands_work_in_their_order(checkout, monkeypatch):
    assert len(runnable()) >= 6
    service, url = None, URL
    try:
        for command in runnable():
            if PORT in command:
                stop(service)
                service, url = start_service(command, checkout)
                continue
            if command.startswith("curl"):
                assert set(post(command.replace(URL, url), checkout)) <= {"good", "defect"}
                continue
            for step in STAND_INS.get(command, (command,)):
                result = run(step.replace(URL, url), checkout)
                assert result.returncode == 0, f"{step}\n{result.stdout}\n{result.stderr}"
        names = {}
        monkeypatch.chdir(checkout)
        exec(python_example("Client").replace(URL, url), names)
        assert names["answer"].decision.label in ("good", "defect")
    finally:
        stop(service)
    assert (checkout / "runs" / "parts" / "report.html").is_file()
    assert (checkout / "models" / "parts" / "manifest.json").is_file()


def test_python_example_is_the_documented_interface(tiny_artifact, tmp_path, toy_root, monkeypatch):
    example = python_example("Predictor")
    shutil.copytree(tiny_artifact, tmp_path / "models" / "parts")
    shutil.copy(next((toy_root / "good").iterdir()), tmp_path / "part.png")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert names["prediction"].mask.shape == (32, 32)
