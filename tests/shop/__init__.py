"""The site that the documentation's samples are of: a shop. There it is called ``shop``."""
