"""What stands around the app: access log, metrics, request ids, keys, limits."""
