"""How many steps fit into the time that a user gives: measured and planned as `fit` does."""

from datasets.sample import Dataset
from training.config import ExperimentConfig
from training.fit.deadline_control import Clock
from training.fit.experiment_choice import ExperimentChoice
from training.fit.timing import count_validated, measure_times
from training.fit.training_plan import DatasetSizes, TrainingPlan, plan_training


def plan_steps(config: ExperimentConfig, dataset: Dataset, ends_at: float, clock: Clock) -> TrainingPlan:
    """Plans a training that ends, judged and exported, at a time.

    Args:
        config: The experiment, whose stages say what share of the steps each has.
        dataset: What it learns from, with its splits.
        ends_at: When everything is to be done, by `clock`.
        clock: Seconds that pass.

    Raises:
        SegdecError: If training cannot even begin.
        RunInterruptedError: If SIGTERM or SIGINT came.
    """
    steps = {name: stage.steps for name, stage in config.stages if stage.steps}
    shares = {name: number / sum(steps.values()) for name, number in steps.items()}
    settings = config.model_dump(mode="json", exclude_none=True)
    times = measure_times(ExperimentChoice(settings, (), shares, 0), dataset, config.runs, clock)
    train, val, test = (dataset.of_split(split) for split in ("train", "val", "test"))
    # Both networks judge the test photographs.
    sizes = DatasetSizes(len(train), count_validated(val), 2 * len(test), config.batch_size)
    return plan_training(shares, times, sizes, ends_at - clock())
