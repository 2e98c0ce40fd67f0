"""The Open Inference Protocol v2: its requests, tensors and outputs."""
