"""An unused GPU is reported with TensorFlow's reason."""

from types import SimpleNamespace

import pytest

from segdec.runtime import gpu

tf = pytest.importorskip("tensorflow")

PRINTED = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1.2 7 port.cc:153] oneDNN custom operations are on.
W0000 00:00:1.3 7 gpu_device.cc:2342] Cannot dlopen some GPU libraries. Skipping registering GPU devices...
E0000 00:00:1.4 7 cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_NO_DEVICE
W0000 00:00:1.5 7 gpu_device.cc:2342] Cannot dlopen some GPU libraries. Skipping registering GPU devices...
"""


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with a GPU that TensorFlow does not use."""
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(gpu, "DEVICES", tmp_path)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _kind=None: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


REASON = (
    "Cannot dlopen some GPU libraries. Skipping registering GPU devices... "
    "failed call to cuInit: CUDA_ERROR_NO_DEVICE"
)


@pytest.mark.parametrize(
    ("printed", "reason"), [(PRINTED, REASON), ("", "TensorFlow gives no reason. Try: nvidia-smi")]
)
@pytest.mark.usefixtures("machine")
def test_tensorflow_is_quoted(monkeypatch, printed, reason):
    done = SimpleNamespace(stderr=printed)
    monkeypatch.setattr(gpu.subprocess, "run", lambda *_arguments, **_options: done)
    assert gpu.gpu_unused_reason() == reason


def test_no_subprocess_without_an_unused_gpu(machine, monkeypatch):
    monkeypatch.setattr(gpu.subprocess, "run", lambda *_arguments, **_options: pytest.fail("asked"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpu.gpu_unused_reason() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _kind=None: ["gpu"])
    assert gpu.gpu_unused_reason() is None
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _kind=None: [])
    (machine / "nvidia0").unlink()
    assert gpu.gpu_unused_reason() is None
