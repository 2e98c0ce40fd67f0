"""Status of the line, computed from hourly sums; the log of photographs that were not inspected."""
