"""The command `fit`: from a folder of images to a trained and exported model."""
