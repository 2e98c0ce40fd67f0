"""Reviews by people, predictions of candidates, error rates estimated from reviews, and the export for
training.
"""
