"""Accepts connections: the server, HTTP and TLS below the app, reloads on SIGHUP, the health check."""
