"""The command `retrain`: from a finished run and reviewed images to the next version of its model."""
