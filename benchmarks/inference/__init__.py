"""Inference speed of engines, plain conversions and PyTorch: `benchmarks.inference.speed`."""
