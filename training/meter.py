"""The progress of a stage: a bar on the terminal, the same numbers for the log."""

import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from segdec.errors import RunError


class Meter:
    """Shows the steps of one stage; silent when the output is not a terminal.

    Args:
        stage: Name of the stage.
        batch_size: Images a step.
        first: Steps already taken.
        steps: Steps of the stage.
    """

    def __init__(self, stage: str, batch_size: int, first: int, steps: int) -> None:
        self._stage = stage
        self._batch_size = batch_size
        self._bar = tqdm(total=steps, initial=first, desc=f"{stage:<8}", unit="step", disable=None)
        self._taken, self._read_at = 0, time.perf_counter()
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def advance(self) -> None:
        """Counts one step."""
        self._taken += 1
        self._bar.update()

    def read(self, losses: Mapping[str, Any]) -> dict[str, float]:
        """Losses and speed since the last reading.

        Raises:
            RunError: If the loss is not a finite number.
        """
        values = {name: float(loss) for name, loss in losses.items()}
        if not math.isfinite(values["loss"]):
            raise RunError(
                f"The loss of stage '{self._stage}' became {values['loss']} by step {self._bar.n}. "
                f"Expected a finite number: lower --stages.{self._stage}.learning-rate."
            )
        now = time.perf_counter()
        speed = self._taken * self._batch_size / (now - self._read_at)
        self._taken, self._read_at = 0, now
        self._show(loss=f"{values['loss']:.4f}", images_s=f"{speed:.1f}")
        return {**values, "images_per_s": speed}

    def validated(self, metrics: Mapping[str, float | None]) -> None:
        """Shows the last validation; its time does not count as training time."""
        self._taken, self._read_at = 0, time.perf_counter()
        shown = {"AP": metrics["average_precision"], "pixel_F1": metrics["pixel_f1"]}
        self._show(**{name: "–" if value is None else f"{value:.3f}" for name, value in shown.items()})

    def _show(self, **values: str) -> None:
        self._shown.update(values)
        self._bar.set_postfix(self._shown)
