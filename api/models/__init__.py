"""The served models: where they lie, how they are loaded, how they are found."""
