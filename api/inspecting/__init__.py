"""A photograph from the request body to its encoded answer."""
