"""What a training run's input costs: reading batches, starting, listing shards, validating.

    python -m benchmarks.training_input [--parts batches starts shards validation]

`batches` reads batches of photographs that are not kept, with as many threads as there are cores and with
one, without op determinism and with it: it is on where there is a GPU. Rounds of all four take turns.
`starts` checks small photographs as a first start does, and as the next one. `shards` starts on the index
of a set that was never packed. `validation` decodes the photographs of a pass, and has them from the cache
in the next. Each is measured in a process of its own.
"""

import argparse
import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from segdec.runtime.cli import clean_exit, import_tensorflow

if TYPE_CHECKING:
    from datasets.sample import Split
    from training.config import ExperimentConfig

T = TypeVar("T")

LIGHT = {"brightness": 0.1, "contrast": 0.2, "noise": 0.02}
BATCH = 8
SETTLE_S = 2.5
"""Files that were written less than two seconds ago are not kept as checked."""


class Cost(NamedTuple):
    """What something took.

    Attributes:
        wall_s: Time.
        cpu_s: Time of all cores.
        peak_mb: Memory beyond what the process held before.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float

    def __str__(self) -> str:
        """Returns a line for the terminal."""
        return f"{self.wall_s:.2f} s, {self.cpu_s:.2f} s of CPU, {self.peak_mb:.0f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures on sets made for the purpose."""
    parser = argparse.ArgumentParser(description="What a training run's input costs.")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--rounds", type=int, default=3, help="of batches (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=19, help="batches a round (default: %(default)s)")
    parser.add_argument("--side", type=int, default=848, help="of a photograph, px (default: %(default)s)")
    parser.add_argument("--count", type=int, default=40, help="photographs (default: %(default)s)")
    parser.add_argument("--files", type=int, default=20_000, help="of a start (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_000_000, help="of shards (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(group="train"), tempfile.TemporaryDirectory() as folder:
        import_tensorflow()
        for part in options.parts:
            for line in PARTS[part](Path(folder) / part, options):
                print(line, flush=True)


def measure_batches(folder: Path, options: argparse.Namespace) -> list[str]:
    """Reads batches, each way in turn."""
    write_photographs(folder, options.count, options.side)
    ways = [(threads, fixed) for threads in (os.cpu_count() or 1, 1) for fixed in (False, True)]
    rounds = [
        [apart(read_batches, folder, threads, fixed, options.steps) for threads, fixed in ways]
        for _ in range(options.rounds)
    ]
    lines = []
    for (threads, fixed), costs in zip(ways, zip(*rounds, strict=True), strict=True):
        wall, cpu = (statistics.median(values) for values in list(zip(*costs, strict=True))[:2])
        lines.append(
            f"{options.steps} batches of {BATCH}, {threads} threads, op determinism "
            f"{'on' if fixed else 'off'}: {wall:.2f} s, {cpu:.2f} s of CPU"
        )
    return lines


def measure_starts(folder: Path, options: argparse.Namespace) -> list[str]:
    """Starts twice on the same files."""
    write_small_photographs(folder, options.files)
    time.sleep(SETTLE_S)
    first, second = (apart(start, experiment(folder)) for _ in range(2))
    return [f"start on {options.files} files: {first}", f"the next start: {second}"]


def measure_shards(folder: Path, options: argparse.Namespace) -> list[str]:
    """Starts on shards of which only the index is looked at."""
    write_index_only(folder, options.records)
    return [
        f"start on shards of {options.records} records: {apart(start, experiment(folder, layout='shards'))}"
    ]


def measure_validation(folder: Path, options: argparse.Namespace) -> list[str]:
    """Has the photographs of two passes read."""
    write_photographs(folder, options.count, options.side)
    first, second = apart(read_twice, folder, os.cpu_count() or 1)
    return [f"validation reads {options.count} photographs: {first}", f"the next time: {second}"]


PARTS = {
    "batches": measure_batches,
    "starts": measure_starts,
    "shards": measure_shards,
    "validation": measure_validation,
}


# === In a process of its own ===


def apart(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Returns what `work` returns; op determinism and memory are those of a process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), import_tensorflow) as pool:
        return pool.submit(work, *arguments, **options).result()


def measured(work: Callable[[], object]) -> Cost:
    """Runs `work` once."""
    Path("/proc/self/clear_refs").write_text("5")  # what the peak was before is forgotten
    before, cpu_s, began = peak_mb(), cpu(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - began, cpu() - cpu_s, peak_mb() - before)


def cpu() -> float:
    """Returns the time that this process has taken of all cores, s."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """Returns the most memory that this process has held, MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 1024 if found else 0.0


def experiment(folder: Path, layout: str = "folder", threads: int = 1) -> "ExperimentConfig":
    """Builds an experiment on the set in `folder` that keeps no photograph."""
    from training.config import ExperimentConfig

    return ExperimentConfig.model_validate(
        {
            "runs": folder / "runs",
            "batch_size": BATCH,
            "data": {
                "layout": layout,
                "root": str(folder / "set"),
                "splits": folder / "set" / "splits.txt" if layout == "folder" else None,
                "checked_folder": folder / "checked",
                "decode_threads": threads,
                "cache_mb": 0,
            },
            "augmentation": LIGHT,
            "stages": {"joint": {"steps": 1000}},
        }
    )


def start(config: "ExperimentConfig") -> Cost:
    """Checks the files, or reads the index; keeps what was found."""
    import tensorflow  # noqa: F401 - to load it is no cost of the start

    from training.data.run_data import load_run_data

    return measured(lambda: load_run_data(config).check_cache.save(parents=True))


def read_batches(folder: Path, threads: int, fixed: bool, steps: int) -> Cost:
    """Reads some batches, after a first one."""
    import tensorflow as tf

    from training.data.input_pipeline import InputPipeline
    from training.data.reading_pool import ReadingPool
    from training.data.run_data import load_run_data

    if fixed:
        tf.config.experimental.enable_op_determinism()
    config = experiment(folder)
    data = load_run_data(config)
    pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(threads))
    batches = iter(pipeline.batches(2, 0, 1 + steps))
    next(batches)
    return measured(lambda: [None for _ in batches])


def read_twice(folder: Path, threads: int) -> tuple[Cost, Cost]:
    """Reads all photographs as validation does, twice."""
    from training.data.array_cache import ArrayCache
    from training.data.reading_pool import ReadingPool
    from training.data.run_data import cached_reader, list_dataset, record_reader

    config = experiment(folder)
    records = list_dataset(config.data, config.data.splits).records
    read = cached_reader(record_reader(config), ArrayCache(2048))
    pool = ReadingPool(threads)
    first, second = (measured(lambda: [None for _ in pool.map(read, records, BATCH)]) for _ in range(2))
    return first, second


# === Sets ===


def write_photographs(folder: Path, count: int, side: int) -> None:
    """Writes a toy set."""
    from datasets.layouts.toy import write_toy

    folder.mkdir()
    write_toy(folder / "set", count, size=side)


def write_small_photographs(folder: Path, count: int) -> None:
    """Writes `count` photographs of 32 px, each another one; one in five shows a defect."""
    import numpy as np

    from segdec.images import write_png

    lines = []
    for name in ("good", "defect", "masks/defect"):
        (folder / "set" / name).mkdir(parents=True)
    mask = np.zeros((32, 32), np.uint8)
    mask[8:16, 8:16] = 255
    write_png(folder / "mask.png", mask)
    for number in range(count):
        name = f"{'good' if number % 5 else 'defect'}/{number:07}"
        pixels = np.random.default_rng(number).integers(0, 256, (32, 32), np.uint8)
        write_png(folder / "set" / f"{name}.png", pixels)
        if not number % 5:
            shutil.copy(folder / "mask.png", folder / "set" / "masks" / f"{name}.png")
        lines.append(f"{('train', 'train', 'val')[number % 3]} {name}\n")
    (folder / "set" / "splits.txt").write_text("".join(lines), encoding="utf-8")


def write_index_only(folder: Path, count: int) -> None:
    """Writes an index of `count` photographs of 1408 × 512 px, and a shard that holds none of them."""
    from datasets.sharding.index_parts import PackedShard
    from datasets.sharding.record_table import PackedRecord, RecordTable
    from datasets.sharding.shard_index import ShardIndex, write_index

    def packed(number: int) -> PackedRecord:
        digest, name = hashlib.sha256(str(number).encode()).hexdigest(), f"line-{number % 8}/{number:09}"
        split: Split = "train" if number % 5 else "val"
        label = int(number % 7 == 0)
        mask, shape = digest if label else None, (512, 1408, 1)
        return PackedRecord(name, split, label, name, "mask", None, 0, number, 1, shape, digest, mask)

    place = folder / "set"
    place.mkdir(parents=True)
    shard = PackedShard(name="all.tfrecord", bytes=count)
    (place / shard.name).write_bytes(bytes(count))
    write_index(
        str(place),
        ShardIndex(("good", "defect"), (shard,), RecordTable.from_records(map(packed, range(count)))),
    )


if __name__ == "__main__":
    main()
