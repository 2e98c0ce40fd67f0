"""The computation of a training step: losses, gradients, schedules, precision."""
