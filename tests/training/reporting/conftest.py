"""The evaluated runs of the metrics' tests."""

from tests.training.metrics.conftest import make_result, make_run

__all__ = ["make_result", "make_run"]
