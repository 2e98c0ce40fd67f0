"""What happens to every request: limits, access log, headers."""
