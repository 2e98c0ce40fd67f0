"""What a run tells while it trains: log, curves, pictures."""
