"""Middleware of the app: access log, CORS, request ids, shutdown, uninspected photographs, errors of /v2."""
