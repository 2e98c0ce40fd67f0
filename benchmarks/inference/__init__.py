"""What the network costs beside other runtimes; each script's docstring states its command.

They are run from the checkout's root: `python -m benchmarks.inference.NAME`; `make bench` runs all and writes
the tables of docs/performance.md.
"""
