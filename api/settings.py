"""The settings of the service, by flag (`--max-pixels`) or environment (`SEGDEC_MAX_PIXELS`); flags win."""

import os
from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from pydantic_settings import CliApp, SettingsError

from api.data_sets.settings import DataSetSettings
from api.delivery.settings import DeliverySettings
from api.labelling.settings import LabellingSettings
from api.reports.settings import ReportSettings
from api.setting_group import ENV_PREFIX, flag_of
from segdec.config import config_error
from segdec.errors import ConfigError
from segdec.runtime.suggestions import nearest_name

CLIENT_VARIABLES = {"SEGDEC_API_KEY"}
"""Variables of `python -m segdec predict --url`, which may run on the same machine."""


class Settings(DataSetSettings, LabellingSettings, DeliverySettings, ReportSettings):
    """Serves a model over HTTP.

    Other commands, each with --help: key NAME (a key for clients), health, export-reviewed, report,
    user add NAME (people who log in to the pages).
    """


def read_settings(arguments: Sequence[str]) -> Settings:
    """Reads the settings from command-line `arguments`, then from the process's environment.

    Args:
        arguments: The command line without the program's name.

    Raises:
        ConfigError: If a flag or a variable is unknown, or a value cannot be used.
    """
    _refuse_unknown((word.split("=")[0] for word in arguments if word.startswith("--")), _known_flags())
    variables = {name.upper() for name in os.environ if name.upper().startswith(ENV_PREFIX)}
    known = [ENV_PREFIX + field.upper() for field in Settings.model_fields]
    _refuse_unknown(variables - CLIENT_VARIABLES, known)
    try:
        settings = CliApp.run(Settings, cli_args=list(arguments))
    except SettingsError as error:
        raise ConfigError(f"{error}. The flags are listed by: python -m api --help") from error
    except ValidationError as error:
        raise config_error(error, Settings) from error
    settings.check()
    return settings


def _known_flags() -> list[str]:
    flags = ["--help"]
    for name, field in Settings.model_fields.items():
        flag = flag_of(name)
        flags += [flag, f"--no-{flag[2:]}"] if field.annotation is bool else [flag]
    return flags


def _refuse_unknown(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"Unknown setting {name}. Did you mean {nearest_name(name, known)}?")
