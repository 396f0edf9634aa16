"""The lengths and ranges that the columns hold, used by the models, the migrations and the checks of input."""

from __future__ import annotations

NAME_LENGTH = 200
QUEUE_LENGTH = 100
KEY_LENGTH = 255
# What a key of unique_for may have, for its period is written behind it: "@2031-05-06T07:00:00Z/3600".
PERIOD_KEY_LENGTH = KEY_LENGTH - 32
TAG_LENGTH = 255
MOST_TAGS = 20
ERROR_CLASS_LENGTH = 200
# Of a backoff that a job carries.
MOST_DELAYS = 100
HOST_LENGTH = 255
VERSION_LENGTH = 50

PRIORITY_LOWEST = -100
PRIORITY_HIGHEST = 100
MAX_ATTEMPTS_HIGHEST = 32_767

# Seconds; a hundred years. Added to a time, more could leave the calendar of a database or of Python.
LONGEST_DELAY = 36_600 * 86_400

# All metadata of a job, as JSON, where DJANGO_JOBS["MAX_METADATA_BYTES"] says nothing else.
METADATA_BYTES = 100_000

# All errors that a job keeps, as JSON. Over it, the earlier ones lose their tracebacks, and then the newer of them go.
ERRORS_BYTES = 2_000_000

# A worker decodes arguments with a recursive parser, and each database has a limit of its own for the depth
# of JSON; this is below all of them, so that what one accepts the other does too.
JSON_DEPTH = 200

EXPRESSION_LENGTH = 200
ZONE_LENGTH = 64
