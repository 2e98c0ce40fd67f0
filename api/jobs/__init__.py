"""Jobs in the background that work on data sets: one table, one runner; each feature adds its kinds."""
