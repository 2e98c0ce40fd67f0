"""Storage of pictures and their retention."""
