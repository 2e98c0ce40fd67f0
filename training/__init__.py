"""Trains, evaluates and exports models."""
