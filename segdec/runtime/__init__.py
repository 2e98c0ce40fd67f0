"""What every entry point shares: errors on stderr, exit codes, atomic files, threads, CPU and GPU features."""
