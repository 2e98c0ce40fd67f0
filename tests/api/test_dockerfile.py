import json
import re
from pathlib import Path

import pytest

from api.listener.health_check import TIMEOUT_S
from api.settings import read_settings

ROOT = Path(__file__).parents[2]
SERVICES = ("serve", "serve-gpu")
IMAGES = (*SERVICES, "train")

Stage = list[tuple[str, str]]


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    """The Dockerfile's stages by name, each as (instruction, rest) with joined lines."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    found: dict[str, Stage] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            stage = found[rest.split(" AS ")[1]] = []
        stage.append((instruction, rest.strip()))
    return found


def whole(stages: dict[str, Stage], name: str) -> Stage:
    """A stage after those it is built on."""
    base = of(stages[name], "FROM")[0].split(" AS ")[0]
    return (whole(stages, base) if base in stages else []) + stages[name]


def of(stage: Stage, instruction: str) -> list[str]:
    return [rest for name, rest in stage if name == instruction]


@pytest.mark.parametrize("image", IMAGES)
def test_every_image_is_built_from_a_pinned_python(stages, image):
    built_on = whole(stages, image)
    first = of(built_on, "FROM")[0]
    copied = {match[1] for rest in of(built_on, "COPY") if (match := re.match(r"--from=(\S+)", rest))}
    assert copied == {f"{image}-packages", "code"}
    for source in (first, *(of(whole(stages, name), "FROM")[0] for name in copied)):
        assert re.fullmatch(r"python:3\.\d+\.\d+-slim\S* AS \w+", source)


@pytest.mark.parametrize("image", IMAGES)
def test_image_runs_no_command_of_the_build_and_no_root(stages, image):
    making_folders = re.compile(r"install --directory --owner \d+ --group \d+ /\w+")
    assert all(making_folders.fullmatch(line) for line in of(whole(stages, image), "RUN"))
    (user,) = of(stages[image], "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a number, so that a cluster can check it"


@pytest.mark.parametrize("image", SERVICES)
def test_serving_images_run_the_service_with_its_settings_and_health_check(stages, image, monkeypatch):
    service = whole(stages, image)
    assert not of(service, "CMD"), "a flag of `docker run` would replace it"
    variables = dict(word.split("=", 1) for rest in of(service, "ENV") for word in rest.split())
    for name, value in variables.items():
        if name.startswith("SEGDEC_"):
            monkeypatch.setenv(name, value)
    settings = read_settings(["--max-pixels", "99"])
    assert (settings.model, settings.host, settings.max_pixels) == (Path("/models"), "0.0.0.0", 99)
    owner, group = of(service, "USER")[-1].split(":")
    folder = variables["SEGDEC_RECORD_FOLDER"]
    assert f"install --directory --owner {owner} --group {group} {folder}" in of(service, "RUN")
    assert folder not in of(service, "VOLUME")
    options, _, command = of(service, "HEALTHCHECK")[0].partition("CMD ")
    assert json.loads(command) == ["python", "-m", "api", "health"]  # see test_health_check.py
    (timeout_s,) = re.findall(r"--timeout=(\d+)s", options)
    assert int(timeout_s) > TIMEOUT_S
    assert "--start-period" in options


@pytest.mark.parametrize(
    ("image", "program"), [("serve", "api"), ("serve-gpu", "api"), ("train", "training")]
)
def test_image_holds_segdec_and_what_it_runs_only(stages, image, program):
    """The entry point is the program, without a shell. All of them run `datasets`."""
    built_on = whole(stages, image)
    assert json.loads(of(built_on, "ENTRYPOINT")[-1]) == ["python", "-m", program]
    copied = [rest.split() for rest in of(built_on, "COPY")]
    from_stages = [words[1:] for words in copied if words[0].startswith("--from=")]
    from_checkout = [words for words in copied if not words[0].startswith("--from=")]
    assert from_stages == [["/opt/venv", "/opt/venv"], ["/opt/code", "/opt/code"]]
    assert {tuple(words) for words in from_checkout} == {(name, name) for name in (program, "datasets")}
    assert of(built_on, "WORKDIR") == ["/app"]
    assert "PYTHONPATH=/app:/opt/code" in " ".join(of(built_on, "ENV"))


def test_build_context_has_exactly_the_copied_files(stages):
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    asked = {
        path
        for stage in stages.values()
        for rest in of(stage, "COPY")
        if not rest.startswith("--from=")
        for path in rest.split()[:-1]
    }
    locks = {path for path in asked if path.startswith("deploy/image/")}
    assert locks == {f"deploy/image/{name}.txt" for name in (*IMAGES, "build")}
    assert asked - locks | {"deploy/image"} == sent
