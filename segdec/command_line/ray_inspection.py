"""Distributes the inspection of many photographs over a Ray cluster."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segdec.command_line.inspection_loop import inspect
from segdec.command_line.inspectors import LocalInspector
from segdec.command_line.parquet_results import ResultFolder
from segdec.errors import MissingExtraError

try:
    import ray
except ImportError as error:
    raise MissingExtraError("ray", "ray") from error

MAX_BATCH = 256
"""Photographs per batch. Results are written after each batch, so that a lost machine costs one batch."""


class RayInspector:
    """An actor that loads the model, inspects batches of photographs and writes the results."""

    def __init__(self, settings: dict[str, Any], folder: Path) -> None:
        self._inspector = LocalInspector(**settings)
        self._folder = folder

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Inspects the photographs `batch["image"]`; returns how many got each label."""
        with ResultFolder(self._folder, self._inspector.identity, read=False) as results:
            inspect([Path(name) for name in batch["image"]], self._inspector, results)
        return {"kind": list(results.counts), "count": list(results.counts.values())}


def inspect_on_ray(images: Sequence[Path], settings: dict[str, Any], results: ResultFolder) -> None:
    """Inspects `images`, writes the results to the folder of `results` and counts them there.

    Joins the cluster that `RAY_ADDRESS` names, else starts one on this machine. Photographs, model and folder
    must have the same paths on all machines. `settings` are the arguments of `LocalInspector`; an actor uses
    one core per engine thread.
    """
    if not images:
        return
    ray.init(ignore_reinit_error=True, log_to_driver=False, configure_logging=False)
    threads = settings["threads"] or 1
    actors = max(1, int(ray.cluster_resources().get("CPU", 1) // threads))
    at_once = min(MAX_BATCH, -(-len(images) // actors))
    parts = ray.data.from_items([{"image": str(path)} for path in images]).map_batches(
        RayInspector,
        fn_constructor_args=({**settings, "threads": threads}, results.folder),
        batch_size=at_once,
        compute=ray.data.ActorPoolStrategy(size=min(actors, -(-len(images) // at_once))),
        num_cpus=threads,
    )
    for part in parts.iter_rows():
        results.counts[part["kind"]] += int(part["count"])
