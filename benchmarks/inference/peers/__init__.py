"""The network on other runtimes; each competitor is a process in their environment (see `environments`)."""
