"""Speed, memory and robustness of the inspection service; `make bench-serving` runs all."""
