"""From photograph to batch: Record (listed) → Sample (decoded) → Example (prepared) → batch (augmented)."""
