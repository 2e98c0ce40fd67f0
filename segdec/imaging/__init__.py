"""Image files to values, each format by the strictest decoder there is."""
