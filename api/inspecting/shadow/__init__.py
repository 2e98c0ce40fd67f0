"""Shadow mode: a candidate model sees the inspected photographs; clients do not see its answers."""
