"""Counts over days, weeks and months."""
