"""Synthetic defects on good photographs, in pixels and in features: pure functions of arrays and a generator."""
