"""The commands of `segdec`: predict, watch, keygen, sign, verify."""
