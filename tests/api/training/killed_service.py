"""A service that is killed while a worker uploads a model, or while an engineer puts it into use.

python -m tests.api.training.killed_service RECORD MODELS MODEL JOB PLACE COUNT WHEN

Without MODEL, which is empty then, the model of the job is put into use. PLACE, COUNT and WHEN are those of
`kill_at` in `tests/training/fault_injection.py`.
"""

import sys
from pathlib import Path

import pytest

from tests.api.training.conftest import replace_networks
from tests.api.training.training_service import JOBS, TrainingService
from tests.training.fault_injection import kill_at

if __name__ == "__main__":
    record, models, model, job, place, count, when = sys.argv[1:]
    replace_networks(pytest.MonkeyPatch())
    with TrainingService(Path(record), Path(models)) as service:
        kill_at(place, int(count), when)
        if model:
            service.send_model(Path(model))
        else:
            service.post(f"{JOBS}/{job}/use")
