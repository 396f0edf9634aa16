"""The app of procrastinate, in a module that is not the main one, as it wants it."""

import procrastinate
import shared

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=shared.URL))


@app.task(name="noop")
async def noop(n):
    """Do nothing."""


@app.task(name="tell")
async def tell(address):
    """Tell when it starts."""
    shared.tell(address)
