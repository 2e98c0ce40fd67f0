"""Inspection plans of the service: they are stored, and activated for stations."""
