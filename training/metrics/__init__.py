"""How good a model is: figures, thresholds, charts, report."""
