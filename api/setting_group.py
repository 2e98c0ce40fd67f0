"""The base of settings: a class for each feature, which `api.settings.Settings` combines."""

from typing import Any

from pydantic_settings import BaseSettings, SettingsConfigDict

ENV_PREFIX = "SEGDEC_"


class SettingGroup(BaseSettings):
    """Settings of a feature. Its bases are the groups whose settings the feature reads, too."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        use_attribute_docstrings=True,
        cli_prog_name="python -m api",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_exit_on_error=False,
        cli_parse_none_str="none",
        env_parse_none_str="none",
    )

    def check(self) -> None:
        """Rejects settings that contradict each other, also those of the other groups.

        Raises:
            ConfigError: If there are such settings.
        """


def flag_of(name: str) -> str:
    """Returns the flag of a setting."""
    return f"--{name.replace('_', '-')}"


def read_words(value: Any) -> Any:
    """Reads words that are separated by commas; other values remain as they are."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value
