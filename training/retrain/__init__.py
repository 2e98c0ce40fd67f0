"""From a finished run and photographs that people have judged to the next version of its model."""
