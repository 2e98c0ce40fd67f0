"""From photograph to batch: Item (listed) → Sample (decoded) → Example (prepared) → batch (augmented)."""
