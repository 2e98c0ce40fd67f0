"""Other frameworks that serve the same stub; each runs in an environment of its own (see `environments`)."""
