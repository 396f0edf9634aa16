"""Views that enqueue."""

import os
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from tests.workload import jobs, tasks


def enqueue(request: HttpRequest) -> HttpResponse:
    jobs.nothing.enqueue(1)
    tasks.noop.enqueue()
    if "fail" in request.GET:
        raise ValueError("after the enqueue")
    return HttpResponse(str(os.getpid()))


urlpatterns: list[Any] = [path("enqueue", enqueue), path("", include("testproject.urls"))]
