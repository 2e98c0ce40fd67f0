"""Exports a trained network as an artifact for each engine."""
