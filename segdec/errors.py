"""The exceptions of the project.

    SegdecError
    ├── ConfigError          an invalid configuration value or key
    ├── ImageError           an unreadable or unusable photograph or mask
    ├── DatasetError         a data set that does not match its layout
    ├── ArtifactError        a damaged, incomplete or too new model folder
    ├── RunError             a training run that cannot start, resume or continue
    ├── ServiceError         a request that an inspection service rejected or did not answer
    └── MissingExtraError    an optional dependency that is not installed

Each message says what arrived, what was expected and what to do. Entry points print it and exit with a
non-zero code; the service returns it as problem+json.
"""


class SegdecError(Exception):
    """Base of all errors that a user can cause or fix."""


class ConfigError(SegdecError):
    """An invalid configuration value or key."""


class ImageError(SegdecError):
    """An unreadable or unusable photograph or mask; `code` is stable, for example `truncated_image`."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class DatasetError(SegdecError):
    """A data set that does not match its layout."""


class ArtifactError(SegdecError):
    """A damaged, incomplete or too new model folder."""


class RunError(SegdecError):
    """A training run that cannot start, resume or continue."""


class ServiceError(SegdecError):
    """A request that an inspection service rejected or did not answer.

    Args:
        detail: What arrived, what was expected, what to do.
        code: Stable error code: the service's own, `unexpected_answer` for an answer from something else, or
            `timeout` or `unreachable` without an answer.
        status: HTTP status; None without an answer.
        request_id: Id of the request in the service's log.
    """

    def __init__(self, detail: str, *, code: str, status: int | None, request_id: str) -> None:
        place = f"request {request_id}" if status is None else f"{status} {code}, request {request_id}"
        super().__init__(f"{detail} ({place})")
        self.detail, self.code, self.status, self.request_id = detail, code, status, request_id


class MissingExtraError(SegdecError, ImportError):
    """An optional dependency that is not installed.

    Args:
        package: The package that could not be imported.
        extra: The extra of `segdec` that installs it; None if only the checkout needs it.
        group: The dependency group of the checkout that installs it, if no extra does.
    """

    def __init__(self, package: str, extra: str | None = None, *, group: str | None = None) -> None:
        if group is None:
            command = f"pip install 'segdec[{extra}]', in a checkout pip install -e '.[{extra}]'"
            how = f"the extra '{extra}': {command}"
        else:
            command = f"pip install -e . --group {group}"
            how = f"the group '{group}', in the checkout and with pip 25.1 or newer: {command}"
        super().__init__(f"The package '{package}' is not installed. Install {how}")
        self.package = package


def is_own_module(error: ImportError) -> bool:
    """Returns whether what is missing is a module of this product or something in it: no package helps."""
    return (error.name or "").partition(".")[0] in ("api", "datasets", "segdec", "training")
