"""What the processes of `forked` begin with: TensorFlow and the trainer imported, nothing started."""

import importlib
import signal

from segdec.runtime.cli import import_tensorflow

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
import_tensorflow(trains=True)
importlib.import_module("training.trainer")
