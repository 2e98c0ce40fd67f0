"""The network on other runtimes; each contender is a process in their environment (see `environments`)."""
