"""Synthetic defects, in pixels and in features: functions of arrays and a random generator."""
