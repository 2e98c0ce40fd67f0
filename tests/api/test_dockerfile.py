import json
import re
from pathlib import Path

import pytest

from api.settings import read_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stages() -> list[list[tuple[str, str]]]:
    """The Dockerfile's stages, each as (instruction, rest) with joined lines."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    found: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            found.append([])
        if found:
            found[-1].append((instruction, rest.strip()))
    return found


def of(stage: list[tuple[str, str]], instruction: str) -> list[str]:
    return [rest for name, rest in stage if name == instruction]


def test_image_is_built_in_two_stages_from_a_pinned_python(stages):
    assert len(stages) == 2
    assert all(
        re.fullmatch(r"python:3\.\d+\.\d+-slim\S*( AS \w+)?", of(stage, "FROM")[0]) for stage in stages
    )


def test_service_is_no_root(stages):
    user = of(stages[-1], "USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a number, so that a cluster can check it"


def test_entry_is_the_service_without_a_shell(stages):
    assert json.loads(of(stages[-1], "ENTRYPOINT")[0]) == ["python", "-m", "api"]
    assert not of(stages[-1], "RUN")


def test_flags_are_added_to_the_settings_of_the_image(stages, monkeypatch):
    assert not of(stages[-1], "CMD"), "a flag of `docker run` would replace it"
    variables = dict(word.split("=", 1) for rest in of(stages[-1], "ENV") for word in rest.split())
    for name, value in variables.items():
        if name.startswith("SEGDEC_"):
            monkeypatch.setenv(name, value)
    settings = read_settings(["--max-pixels", "99"])
    assert (settings.model, settings.host, settings.max_pixels) == (Path("/models"), "0.0.0.0", 99)


def test_health_is_asked_at_readyz_without_a_shell(stages):
    options, _, command = of(stages[-1], "HEALTHCHECK")[0].partition("CMD ")
    interpreter, flag, code = json.loads(command)
    assert (interpreter, flag) == ("python", "-c")
    assert "/readyz" in code
    assert "urllib" in code
    compile(code, "healthcheck", "exec")
    assert "--start-period" in options


def test_image_holds_segdec_and_api_only(stages):
    copied = [rest.split() for rest in of(stages[-1], "COPY")]
    from_builder = [words for words in copied if words[0].startswith("--from=")]
    from_checkout = [words for words in copied if not words[0].startswith("--from=")]
    assert [words[1:] for words in from_builder] == [["/opt/venv", "/opt/venv"]]
    assert from_checkout == [["api", "/app/api"]]
    assert "PYTHONPATH=/app" in " ".join(of(stages[-1], "ENV"))
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert sent == {"api", "segdec", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"}


def test_everything_the_image_is_built_from_may_be_sent(stages):
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    for stage in stages:
        for rest in of(stage, "COPY"):
            if not rest.startswith("--from="):
                assert set(rest.split()[:-1]) <= sent
