import os
from pathlib import Path

import pytest

from api.settings import Settings, read_settings
from segdec.errors import ConfigError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """No setting of the machine that runs the tests."""
    for name in os.environ:
        if name.upper().startswith("SEGDEC_"):
            monkeypatch.delenv(name)


def test_flags_and_environment_fill_the_same_fields(monkeypatch):
    environment = {
        "SEGDEC_MODEL": "from-environment",
        "SEGDEC_PORT": "9000",
        "SEGDEC_HOST": "",
        "SEGDEC_API_KEY": "of the client",
        "PATH": "/bin",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = read_settings(["--port", "0", "--max-body-bytes=99", "--access-log"])
    assert settings == Settings(
        model=Path("from-environment"), host="127.0.0.1", port=0, max_body_bytes=99, access_log=True
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (["--modle", "x"], {}, "Unknown setting --modle. Did you mean --model?"),
        (["--model", "x", "--max-pixel=3"], {}, "Did you mean --max-pixels?"),
        (["--model", "x"], {"SEGDEC_MAX_PIXLES": "3"}, "Did you mean SEGDEC_MAX_PIXELS?"),
        ([], {}, "Pass --model FOLDER"),
        (["x"], {}, "unrecognized arguments: x"),
        (["--model", "x", "--deadline-ms", "500000"], {}, "longer.*Raise --engine-timeout-s to 500 or more"),
        (["--model", "x", "--engine-lost-s", "60"], {}, "60 is shorter than --engine-timeout-s 120"),
        (["--model", "x", "--port", "70000"], {}, "port: .*65535.*'70000'"),
        (["--model", "x", "--engine", "abacus"], {}, "engine: .*unknown; expected one of: tensorflow"),
        (["--model", "x"], {"SEGDEC_DRAIN_S": "soon"}, "drain_s: .*'soon'"),
        (["--model", "x"], {"SEGDEC_RECORD_SHIFTS": "06:00,24:00"}, "shifts: .*such as 06:00.*'06:00,24:00'"),
        (
            ["--model", "x", "--allowed-hosts", "a,https://b:8000"],
            {},
            "allowed_hosts: .*such as inspection.plant",
        ),
        (
            ["--model", "x", "--trusted-proxies", "10.0.0.1/8"],
            {},
            "trusted_proxies: .*host bits set; expected addresses and networks such as 10.0.0.0/8",
        ),
        (["--model", "x"], {"SEGDEC_TRUSTED_PROXIES": "nginx"}, "trusted_proxies: .*such as 10.0.0.0/8"),
        (
            ["--model", "x", "--public-url", "plant"],
            {},
            "public_url: .*such as https://inspect.plant.*'plant'",
        ),
        (["--model", "x", "--allow-no-model"], {}, "--allow-no-model needs --models FOLDER"),
        (["--model", "x", "--record-zone", "Mars"], {}, "record_zone: .*such as Europe/Berlin.*'Mars'"),
    ],
)
def test_wrong_settings_say_what_to_do(arguments, environment, words, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=words):
        read_settings(arguments)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 3), (64, 8)])
def test_one_core_is_left_to_the_engine(monkeypatch, cores, threads):
    monkeypatch.setattr("api.inspecting.settings.available_cores", lambda: cores)
    assert Settings().image_threads == threads


def test_shifts_are_times_of_the_day_in_their_order(monkeypatch):
    assert [at.hour for at in read_settings(["--model", "x"]).record_shifts] == [6, 14, 22]
    flags = ["--model", "x", "--record-shifts", "17:45, 05:45,17:45", "--record-zone", "Europe/Berlin"]
    assert [str(at) for at in read_settings(flags).record_shifts] == ["05:45:00", "17:45:00"]
    monkeypatch.setenv("SEGDEC_RECORD_SHIFTS", "06:30,18:30")
    assert [str(at) for at in read_settings(["--model", "x"]).record_shifts] == ["06:30:00", "18:30:00"]


def test_host_names_are_separated_by_commas(monkeypatch):
    flags = ["--model", "x", "--allowed-hosts", "inspection, *.plant"]
    assert read_settings(flags).allowed_hosts == ("inspection", "*.plant")
    monkeypatch.setenv("SEGDEC_ALLOWED_HOSTS", "*")
    assert read_settings(["--model", "x"]).allowed_hosts == ("*",)


def test_help_lists_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        read_settings(["--help"])
    printed = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in printed for name in Settings.model_fields)
