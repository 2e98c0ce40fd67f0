"""SegDecNet: two-stage segmentation and decision for surface defects."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("segdec")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0.0.0"
