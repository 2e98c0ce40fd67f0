"""Reports of evaluations: HTML pages, charts, galleries and tables."""
