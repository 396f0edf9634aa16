"""``DJANGO_JOBS`` of the demo: what comes periodically, so that there is something to look at."""

import datetime as dt
from typing import Any

JOBS = "testproject.demo.jobs"

DJANGO_JOBS: dict[str, Any] = {
    "QUEUES": {"mail,payments": 4, "images": 2, "*": 4},
    "RETENTION": {"completed": dt.timedelta(hours=1)},
    "SCHEDULES": {
        "visitors": {"job": f"{JOBS}.visitors_come", "every": dt.timedelta(seconds=5)},
        "expire carts": {"job": f"{JOBS}.expire_carts", "cron": "*/5 * * * *"},
        "stock of Lisbon": {
            "job": f"{JOBS}.sync_stock",
            "every": dt.timedelta(minutes=2),
            "args": ["Lisbon", "2026-11-29T22:00:00Z"],
        },
        "catalogue of Okapi": {
            "job": f"{JOBS}.import_catalogue",
            "every": dt.timedelta(minutes=10),
            "args": ["Okapi Trading"],
        },
        "nightly report": {
            "job": f"{JOBS}.nightly_report",
            "cron": "30 2 * * MON-FRI",
            "timezone": "Europe/Berlin",
        },
    },
}
