"""The served models: storage, loading and lookup."""
