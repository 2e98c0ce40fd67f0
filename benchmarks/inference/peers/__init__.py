"""Programs that run in the environment of `inference.txt`, without `segdec`."""
