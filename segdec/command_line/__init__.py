"""What `python -m segdec predict` is made of."""
