"""Records to batches: reading, caching, sampling, augmentation, targets."""
