"""What the inspection service costs and endures; each script's docstring states its command.

They are run from the checkout's root: `python -m benchmarks.serving.NAME`; `make bench-serving` runs all.
"""
