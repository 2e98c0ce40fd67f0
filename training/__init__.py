"""Samples in, a trained and evaluated model out."""
