"""Writes state dicts as PyTorch does, without PyTorch."""

import collections
import io
import pickle
import struct
import zipfile

import numpy as np

from training.optimization.torch_weights import MAGIC_NUMBER, PROTOCOL


class Reference:
    """Pickled as a name of PyTorch, which is not installed."""

    def __init__(self, module, name, *arguments):
        self.module, self.name, self.arguments = module, name, arguments


class Writer(pickle._Pickler):
    """Writes protocol 2 as PyTorch did."""

    def persistent_id(self, obj):
        return obj[1:] if isinstance(obj, tuple) and obj[:1] == ("storage id",) else None

    def save_reference(self, obj):
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        if obj.arguments:
            self.save(obj.arguments)
            self.write(pickle.REDUCE)

    dispatch = {**pickle._Pickler.dispatch, Reference: save_reference}  # noqa: RUF012


def encode(tensors, *, archive=False):
    """A state dict in the format before PyTorch 1.6, or with `archive` since; transposed, as in packages."""
    described, storages = collections.OrderedDict(), {}
    for number, (name, value) in enumerate(tensors.items()):
        stored = np.array(value.T, order="C")
        strides = tuple(step // stored.itemsize for step in stored.T.strides)
        kind = "FloatStorage" if value.dtype == np.float32 else "LongStorage"
        place = ("storage id", "storage", Reference("torch", kind), str(number), "cpu", stored.size)
        place += () if archive else (None,)
        hooks = collections.OrderedDict()
        rebuilt = (place, 0, value.shape, strides, False, hooks)
        described[name] = Reference("torch._utils", "_rebuild_tensor_v2", *rebuilt)
        storages[str(number)] = stored
    file = io.BytesIO()
    if archive:
        with zipfile.ZipFile(file, "w") as written:
            with written.open("name/data.pkl", "w") as pickled:
                Writer(pickled, 2).dump(described)
            for key, stored in storages.items():
                written.writestr(f"name/data/{key}", stored.tobytes())
        return file.getvalue()
    for part in (MAGIC_NUMBER, PROTOCOL, {}, described, list(storages)):
        Writer(file, 2).dump(part)
    for stored in storages.values():
        file.write(struct.pack("<q", stored.size) + stored.tobytes())
    return file.getvalue()
