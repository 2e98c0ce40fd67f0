"""Reports of a shift, a day, a week or a lot, as PDF and Excel."""
