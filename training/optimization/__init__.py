"""What a step computes: losses, gradients, schedules, precision."""
