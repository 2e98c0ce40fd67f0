"""The training worker: leases jobs of a service, trains, and returns the models."""
