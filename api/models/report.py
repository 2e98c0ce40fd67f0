"""The report of the training that a model may contain."""

from api.errors import RequestError
from api.models.registry import ServedModel
from segdec.artifact import MAX_REPORT_BYTES, REPORT, Manifest, read_file
from segdec.errors import ArtifactError


def read_report(model: ServedModel) -> bytes:
    """Returns the report in the folder of a model, compared with its checksum: a page in one file.

    Raises:
        RequestError: 404 if the model was exported without one, or it was deleted or changed since.
    """
    manifest, name = model.config, f"version '{model.identity.version}' of '{model.identity.name}'"
    if not isinstance(manifest, Manifest) or model.folder is None or REPORT not in manifest.files:
        raise RequestError(
            404,
            "no_report",
            f"There is no report of {name}: its run was not evaluated, or the export has no photographs. Run "
            "python -m training evaluate RUN, and export it again as a new version.",
        )
    try:
        return read_file(model.folder, manifest, REPORT, MAX_REPORT_BYTES)
    except ArtifactError as error:
        raise RequestError(
            404, "report_changed", f"The report of {name} was deleted or has changed. Copy the model again."
        ) from error
