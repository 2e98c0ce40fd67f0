"""Shared by all entry points: error messages, exit codes, atomic files, threads, CPU and GPU features."""
