"""The exceptions of the project.

    SegdecError
    ├── ConfigError          a configuration value or key that cannot be used
    ├── ImageError           a photograph or mask that cannot be read or used
    ├── DatasetError         a folder of photographs that does not hold what its layout promises
    ├── ArtifactError        a model folder that is damaged, incomplete or too new
    ├── RunError             a training run that cannot start, resume or go on
    ├── ServiceError         an inspection service that refused a request or did not answer it
    └── MissingExtraError    an optional dependency that is not installed

Each message says what arrived, what was expected and what to do. Entry points print it and leave
with a non-zero exit code; the service answers it as problem+json.
"""


class SegdecError(Exception):
    """Base of every error a user can cause or repair."""


class ConfigError(SegdecError):
    """A configuration value or key that cannot be used."""


class ImageError(SegdecError):
    """A photograph or mask that cannot be read or used.

    Args:
        message: What arrived, what was expected, what to do.
        code: Stable word for programs, for example `truncated_image`.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class DatasetError(SegdecError):
    """A folder of photographs that does not hold what its layout promises."""


class ArtifactError(SegdecError):
    """A model folder that is damaged, incomplete or too new."""


class RunError(SegdecError):
    """A training run that cannot start, resume or go on."""


class ServiceError(SegdecError):
    """An inspection service that refused a request or did not answer it.

    Args:
        detail: What arrived, what was expected, what to do.
        code: Stable word for programs: the service's own, `unexpected_answer` for an answer that is not
            the service's, or `timeout` or `unreachable` if none came.
        status: HTTP status; None if no answer came.
        request_id: Under which the service's log has the request.
    """

    def __init__(self, detail: str, *, code: str, status: int | None, request_id: str) -> None:
        place = f"request {request_id}" if status is None else f"{status} {code}, request {request_id}"
        super().__init__(f"{detail} ({place})")
        self.detail = detail
        self.code = code
        self.status = status
        self.request_id = request_id


class MissingExtraError(SegdecError, ImportError):
    """An optional dependency that is not installed.

    Args:
        package: The package that could not be imported.
        extra: The extra of `segdec` that installs it; None for what only the checkout needs.
        group: The dependency group of the checkout that installs it, where no extra does.
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
        self.extra = extra
        self.group = group
