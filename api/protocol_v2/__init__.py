"""The Open Inference Protocol v2: its tensors, questions and answers."""
