"""How the line does, from sums of hours, and what was not inspected."""
