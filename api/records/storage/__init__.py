"""Where pictures lie, and for how long."""
