"""Jobs that tests run in real worker processes."""
