"""A site that was loaded before its server forks, and has enqueued by then."""

from django.core.wsgi import get_wsgi_application
from django.db import connections

application = get_wsgi_application()

assert all(connection.connection is None for connection in connections.all()), (
    "loading the site connects to nothing"
)

from tests.workload import jobs  # noqa: E402

jobs.nothing.enqueue(0)
connections.close_all()  # as every site must that used a database before the fork
