"""The run folder: files, lock, checkpoints, logs and pictures of a training."""
