"""Metrics of evaluated models, and the choice of calibration and thresholds."""
