"""The artifact: a folder with a model's files, a manifest and checksums.

    model/
    ├── manifest.json      description of the model, and the SHA-256 of every other file
    ├── manifest.sha256    the SHA-256 of the manifest; `sha256sum -c` checks it
    ├── signatures/        of the manifest, see `segdec.artifact.signatures`; optional
    ├── report.html        of the training's evaluation; optional
    ├── self_test/         a photograph and the mask scores that it must get
    └── tensorflow/        files of one engine; one folder per exported engine

Artifacts are written atomically and rejected if any file has changed. Engines load a private copy of their
files, which is compared with the checksums while it is made.
"""

from segdec.artifact.differences import (
    UNLIKE_TRAINING,
    PhotographComparison,
    UnlikeAction,
    compare_photograph,
    compare_pixels,
    compare_surface,
    compare_with,
)
from segdec.artifact.manifest import FORMAT_VERSION, MANIFEST, SCORE_TOLERANCE, Manifest, Parent, SelfTest
from segdec.artifact.operating_points import (
    MAX_CURVE_POINTS,
    ExpectedOutcomes,
    ExpectedParts,
    OperatingPoint,
    OperatingPoints,
    OutcomeCurve,
    PartShare,
)
from segdec.artifact.rating import ModelRating
from segdec.artifact.reading import (
    ALIASES,
    MAX_REPORT_BYTES,
    REPORT,
    STABLE,
    Artifact,
    manifest_sha256,
    open_artifact,
    read_file,
    read_manifest,
)
from segdec.artifact.training_photographs import TrainingPhotographs
from segdec.artifact.writing import check_writable, write_artifact

__all__ = [
    "ALIASES",
    "FORMAT_VERSION",
    "MANIFEST",
    "MAX_CURVE_POINTS",
    "MAX_REPORT_BYTES",
    "REPORT",
    "SCORE_TOLERANCE",
    "STABLE",
    "UNLIKE_TRAINING",
    "Artifact",
    "ExpectedOutcomes",
    "ExpectedParts",
    "Manifest",
    "ModelRating",
    "OperatingPoint",
    "OperatingPoints",
    "OutcomeCurve",
    "Parent",
    "PartShare",
    "PhotographComparison",
    "SelfTest",
    "TrainingPhotographs",
    "UnlikeAction",
    "check_writable",
    "compare_photograph",
    "compare_pixels",
    "compare_surface",
    "compare_with",
    "manifest_sha256",
    "open_artifact",
    "read_file",
    "read_manifest",
    "write_artifact",
]
