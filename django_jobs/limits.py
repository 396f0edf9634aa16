"""The lengths and ranges that the columns hold, used by the models, the migrations and the checks of input."""

from __future__ import annotations

NAME_LENGTH = 200
QUEUE_LENGTH = 100
KEY_LENGTH = 255
ERROR_CLASS_LENGTH = 200
HOST_LENGTH = 255
VERSION_LENGTH = 50

PRIORITY_LOWEST = -100
PRIORITY_HIGHEST = 100
MAX_ATTEMPTS_HIGHEST = 32_767

# Seconds; a hundred years. Added to a time, more could leave the calendar of a database or of Python.
LONGEST_DELAY = 36_600 * 86_400

# What one call merges into a job's metadata, as JSON.
METADATA_BYTES = 100_000

# A worker decodes arguments with a recursive parser, and each database has a limit of its own for the depth
# of JSON; this is below all of them, so that what one accepts the other does too.
JSON_DEPTH = 200
