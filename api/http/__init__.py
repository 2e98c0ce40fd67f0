"""What all routes share: bodies, parameters, roles, limits."""
