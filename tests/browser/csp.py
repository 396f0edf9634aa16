"""The strictest policy for what a page may load and run. Every page of the suite's site is sent with it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

REPORTS = "/csp-reports/"
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        f"report-uri {REPORTS}",
    ]
)


class Violations:
    """What browsers have reported."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: list[str] = []

    def add(self, report: str) -> None:
        with self._lock:
            self._reports.append(report)

    def take(self) -> list[str]:
        """Those since the last time."""
        with self._lock:
            reports, self._reports = self._reports, []
            return reports


violations = Violations()


class ContentSecurityPolicy:
    """Sends the policy with every answer, and takes the browser's reports."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path == REPORTS:
            violations.add(request.body.decode())
            return HttpResponse(status=204)
        if request.path == "/favicon.ico":  # browsers ask for one, and complain of its absence
            return HttpResponse(status=204)
        response = self.get_response(request)
        response["Content-Security-Policy"] = POLICY
        return response
