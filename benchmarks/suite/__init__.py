"""Accuracy of `fit` on several data sets, beside two simple baselines: `python -m benchmarks.suite`."""
