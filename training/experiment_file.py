"""Experiments in TOML files, overridden by flags of the same names."""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError
from pydantic_settings import CliApp, SettingsError

from segdec.config import config_error, nearest_key
from segdec.errors import ConfigError
from training.config import ExperimentConfig


def load_experiment(path: Path, flags: list[str] | None = None) -> ExperimentConfig:
    """Reads an experiment file; the command line's `--field value` pairs override it.
    Raises a `ConfigError` if the file cannot be read, or a key or value is invalid.
    """
    values = _read_toml(path)
    _check_flags(flags or [])
    try:
        return CliApp.run(ExperimentConfig, cli_args=[_with_hyphens(flag) for flag in flags or []], **values)
    except ValidationError as error:
        raise config_error(error, ExperimentConfig) from error
    except SettingsError as error:
        raise ConfigError(f"{error}. The fields are listed by: python -m training run --help") from error


def print_fields() -> None:
    """Prints the flags of all fields."""
    with suppress(SystemExit):
        CliApp.run(ExperimentConfig, cli_args=["--help"])


def save_experiment(config: ExperimentConfig) -> str:
    """Returns the effective configuration as TOML; `load_experiment` restores it. The number of classes is
    left out unless it is set, since the data set determines it.
    """
    is_set = "num_classes" in config.network.model_fields_set
    omitted = None if is_set else {"network": {"num_classes"}}
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True, exclude=omitted))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read the experiment '{path}': {error.strerror}. Expected a TOML file such as those in "
            "training/experiments."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' is not valid TOML: {error}.") from error


def _with_hyphens(argument: str) -> str:
    """Accepts flags with the underscores of the fields."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if argument.startswith("--") else argument


def _check_flags(flags: list[str]) -> None:
    """Reports unknown flags with the nearest known one, which the parser does not."""
    for flag in flags:
        name = flag.split("=")[0].removeprefix("--").removeprefix("no-").replace("-", "_")
        if not flag.startswith("--") or name in ("help", ""):
            continue
        nearest = nearest_key(name, ExperimentConfig)
        if nearest != name:
            raise ConfigError(
                f"{flag.split('=')[0]}: unknown flag. Did you mean '--{nearest.replace('_', '-')}'?"
            )
