"""The inspection plan: what is looked at, what is measured, and what is allowed."""
