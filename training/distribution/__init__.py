"""Devices, strategies, and processes that train together."""
