"""Networks in one thread: batches, memory and time that they need, and a watchdog."""
