"""The jobs of an invented shop: some quick, some slow, some that fail now and then, as jobs do."""

import random
import threading
from typing import Any

from django_jobs import Fail, JobContext, job

# Of those that the shop's traffic enqueues: how often, among all.
TRAFFIC = {"send_receipt": 10, "resize_image": 8, "charge_card": 5, "index_product": 12, "sync_stock": 1}


class MailServerBusy(Exception):
    """The mail server takes no more at present."""


class WarehouseUnreachable(Exception):
    """The warehouse does not answer."""


def work(seconds: float) -> None:
    """Take a while."""
    threading.Event().wait(seconds)


def unlucky(part: float) -> bool:
    """True so often."""
    return random.random() < part  # noqa: S311 - no secret


@job(queue_name="mail", max_attempts=5, backoff=[15, 60, 300])
def send_receipt(order_id: int, email: str) -> None:  # noqa: ARG001 - nobody gets mail
    """Send a receipt; the mail server is busy now and then."""
    work(random.uniform(0.05, 0.3))  # noqa: S311
    if unlucky(0.08):
        raise MailServerBusy(f"421 4.7.0 too many connections, receipt of order {order_id} is deferred")


@job(queue_name="images", max_attempts=3)
def resize_image(path: str, widths: list[int]) -> dict[str, int]:
    """Make an image's smaller versions."""
    work(random.uniform(0.2, 0.9))  # noqa: S311
    if unlucky(0.01):
        raise Fail(f"{path} is no image: its first bytes are b'<!DOCTYPE'")
    return {f"{path}@{width}": width * 117 for width in widths}


@job(queue_name="payments", priority=50, max_attempts=3, backoff=20, redact=["card_token"])
def charge_card(order_id: int, amount: str, card_token: str) -> str:  # noqa: ARG001 - it is not shown either
    """Take the money for an order."""
    work(random.uniform(0.1, 0.6))  # noqa: S311
    if unlucky(0.02):
        raise Fail(f"card declined for order {order_id}")
    return f"charge-{order_id}"


@job(queue_name="search")
def index_product(product_id: int) -> None:  # noqa: ARG001 - there is no index
    """Bring a product into the search index."""
    work(random.uniform(0.01, 0.05))  # noqa: S311


@job(queue_name="warehouse", max_attempts=2, backoff=10)
def sync_stock(warehouse: str, since: str) -> None:
    """Ask a warehouse for its stock. One of them is often away."""
    work(random.uniform(0.3, 1.2))  # noqa: S311
    if warehouse == "Lisbon" and unlucky(0.7):
        raise WarehouseUnreachable(
            f"{warehouse} did not answer within 10 s (asked for changes since {since})"
        )


@job(queue_name="imports", takes_context=True, timeout=600)
def import_catalogue(context: JobContext, supplier: str, rows: int = 240) -> str:
    """Read a supplier's catalogue, row by row, and say how far it is."""
    for row in range(rows):
        if context.should_stop():
            context.snooze(30)
        work(0.25)
        context.progress(row + 1, rows, f"row {row + 1} of {supplier}")
    return f"{rows} rows of {supplier}"


@job(queue_name="reports", unique="nightly report")
def nightly_report(kind: str = "sales") -> dict[str, Any]:
    """Add the day up."""
    work(random.uniform(1.0, 3.0))  # noqa: S311
    return {"kind": kind, "orders": 1284, "revenue": "48230.50", "largest": 2**63 + 1}


@job(queue_name="housekeeping")
def expire_carts() -> int:
    """Forget carts that nobody came back to."""
    work(0.1)
    return random.randint(0, 40)  # noqa: S311


@job(queue_name="housekeeping", priority=100, max_attempts=1)
def visitors_come() -> None:
    """The traffic of a shop: some orders, some new pictures, a stock update; once in a while a catalogue."""
    for _ in range(random.randint(5, 30)):  # noqa: S311
        enqueue_one()
    if unlucky(0.1):
        import_catalogue.enqueue(random.choice(["Fern & Sons", "Okapi Trading", "Hilltop Mills"]))  # noqa: S311


def enqueue_one() -> None:
    """One job of the shop's traffic."""
    number = random.randint(1, 9_999)  # noqa: S311
    (name,) = random.choices(list(TRAFFIC), weights=list(TRAFFIC.values()))  # noqa: S311
    if name == "send_receipt":
        send_receipt.using(tags=[f"order:{number}"]).enqueue(number, f"customer{number}@example.com")
    elif name == "resize_image":
        resize_image.enqueue(f"products/{number}.jpg", widths=[320, 640, 1280])
    elif name == "charge_card":
        charge_card.enqueue(number, f"{random.uniform(5, 300):.2f}", card_token=f"tok_{number:08x}")  # noqa: S311
    elif name == "index_product":
        index_product.enqueue(number)
    else:
        warehouse = random.choice(["Bergen", "Lisbon", "Utrecht"])  # noqa: S311
        sync_stock.enqueue(warehouse, since="2026-11-29T22:00:00Z")
