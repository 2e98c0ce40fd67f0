"""Training jobs: what engineers order, and what training workers lease, report and upload."""
