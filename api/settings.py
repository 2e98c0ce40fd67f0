"""What an operator can set, by flag (`--max-pixels`) or environment (`SEGDEC_MAX_PIXELS`); a flag wins."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict, SettingsError

from segdec.config import explain
from segdec.errors import ConfigError
from segdec.suggestions import nearest

ENV_PREFIX = "SEGDEC_"


class Settings(BaseSettings):
    """Serves a model over HTTP."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        cli_prog_name="python -m api",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_exit_on_error=False,
    )

    model: Path = Field(description="folder of the exported model")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    max_body_bytes: int = Field(32 * 1024**2, gt=0, description="largest request body, bytes")
    max_pixels: int = Field(
        2**24,
        gt=0,
        description="largest photograph, height × width; a model with native input runs the network on every "
        "pixel and takes 128 bytes of memory for each (preset compact; the others more)",
    )
    queue_size: int = Field(
        32, ge=0, description="requests that may wait while one runs; further ones get a 503"
    )
    retry_after_s: int = Field(1, ge=0, description="seconds that a 503 asks the client to wait")
    image_threads: int = Field(2, gt=0, description="threads that decode photographs and encode masks")
    drain_s: int = Field(30, ge=0, description="seconds that running requests may take after SIGTERM")
    access_log: bool = Field(False, description="print a line for each request")


def read_settings(arguments: Sequence[str]) -> Settings:
    """Reads the settings from command-line `arguments`, then from the process's environment.

    Args:
        arguments: The command line without the program's name.

    Raises:
        ConfigError: If a flag or a variable is unknown, or a value cannot be used.
    """
    _refuse_unknown((word.split("=")[0] for word in arguments if word.startswith("--")), _known_flags())
    variables = (name.upper() for name in os.environ if name.upper().startswith(ENV_PREFIX))
    _refuse_unknown(variables, [ENV_PREFIX + field.upper() for field in Settings.model_fields])
    try:
        return CliApp.run(Settings, cli_args=list(arguments))
    except SettingsError as error:
        raise ConfigError(f"{error}. The flags are listed by: python -m api --help") from error
    except ValidationError as error:
        if any(detail["type"] == "missing" for detail in error.errors()):
            raise ConfigError(
                f"No model given. Pass --model FOLDER, an exported model, or set {ENV_PREFIX}MODEL."
            ) from error
        raise explain(error, Settings) from error


def _known_flags() -> list[str]:
    flags = ["--help"]
    for name, field in Settings.model_fields.items():
        kebab = name.replace("_", "-")
        flags += [f"--{kebab}", f"--no-{kebab}"] if field.annotation is bool else [f"--{kebab}"]
    return flags


def _refuse_unknown(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"Unknown setting {name}. Did you mean {nearest(name, known)}?")
