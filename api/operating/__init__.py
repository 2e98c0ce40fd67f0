"""What operating the service needs: logs, metrics, keys, limits, encryption."""
