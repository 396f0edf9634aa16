"""The documentation's samples are run, and what it lists is compared with the code."""
