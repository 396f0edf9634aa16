"""What must be true at the end, whatever happened: of each job, of each claim, of each effect.

Everything here is about data: what processes noted (:mod:`tests.chaos.journal`), and what the tables hold.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LIVE = ("pending", "scheduled", "available", "running")
# Jobs that run for ever, if they must, until they are completed.
LASTING = frozenset(
    [
        "plain",
        "slow",
        "flaky",
        "effect",
        "effect_by_hand",
        "unique",
        "snoozing",
        "asynchronous",
        "late",
        "rude",
    ]
)
FENCED = frozenset(["effect", "effect_by_hand"])
# Errors that callers meet when the server, or the way to it, is gone. No other may reach them.
AWAY = frozenset(
    [
        None,  # no answer at all
        "57P01",  # the administrator ended the session
        "57P02",  # another session crashed
        "57P03",  # the server starts or stops
        "25P03",  # a stopped process was in a transaction for too long
    ]
)


@dataclass(frozen=True)
class Row:
    """A job as the table has it; ``finalized_at`` in seconds of the clock."""

    id: int
    kind: str
    token: str
    state: str
    attempt: int
    max_attempts: int
    claims: int
    finalized_at: float | None
    error_class: str | None = None
    holds_key: bool = False


@dataclass
class Story:
    """All that was noted, sorted."""

    intended: dict[str, str] = field(default_factory=dict)  # kind by token
    committed: dict[str, int] = field(default_factory=dict)  # id by token
    duplicates: dict[str, tuple[int, float]] = field(
        default_factory=dict
    )  # id, and when it was told, by token
    rolled_back: set[str] = field(default_factory=set)
    cancels: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    began: Counter[tuple[int, int]] = field(default_factory=Counter)
    ended: Counter[tuple[int, int]] = field(default_factory=Counter)
    raised: set[tuple[int, int]] = field(default_factory=set)
    #: Of each run the claim, the process, and when it began.
    runs: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    attempts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: How often a worker said of a job that it is completed.
    completions: Counter[int] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    _intended_at: dict[str, float] = field(default_factory=dict)

    @classmethod
    def told(cls, lines: Iterable[Mapping[str, Any]]) -> "Story":
        """Read the journals' lines."""
        story = cls()
        for line in lines:
            story._tell(line)
        return story

    def _tell(self, line: Mapping[str, Any]) -> None:
        match line["what"]:
            case "intended":
                self.intended[line["token"]] = line["kind"]
                self._intended_at[line["token"]] = line["at"]
            case "committed" if line["duplicate"]:
                self.duplicates[line["token"]] = (line["id"], self._intended_at[line["token"]])
            case "committed":
                self.committed[line["token"]] = line["id"]
            case "rolled back":
                self.rolled_back.update(line["tokens"])
            case "cancels":
                self.cancels.update(line["ids"])
            case "cancelled":
                self.cancelled.update(line["ids"])
            case "began":
                self.began[line["id"], line["claims"]] += 1
                self.runs[line["id"], line["claims"]] = (line["pid"], line["at"])
                self.attempts[line["id"]].append(line["attempt"])
            case "ended":
                self.ended[line["id"], line["claims"]] += 1
            case "raised":
                self.raised.add((line["id"], line["claims"]))
            case "failed":
                self.failures.append(dict(line))


def reckon(
    story: Story, rows: Iterable[Row], effects: Iterable[tuple[int, int]], may_be_away: bool
) -> list[str]:
    """All that is not as it must be, in words; empty when everything is.

    :param effects: of each effect its job and the claim that left it.
    :param may_be_away: whether the database may have been unreachable.
    """
    rows = list(rows)
    return [
        *_lost_and_found(story, rows),
        *_claims(story, rows),
        *_effects(rows, effects),
        *(problem for row in rows for problem in _end(story, row)),
        *_keys(story, rows),
        *_failures(story, may_be_away),
    ]


def _lost_and_found(story: Story, rows: list[Row]) -> Iterator[str]:
    """Every job that was committed exists, once; nothing else does."""
    by_token = Counter(row.token for row in rows)
    by_id = {row.id: row for row in rows}
    for token, id_ in story.committed.items():
        if id_ not in by_id:
            yield f"job {id_} ({story.intended[token]}) is lost: its enqueue was committed"
        elif by_id[id_].token != token:
            yield f"job {id_} is not the one that was enqueued under that id"
    for token, count in by_token.items():
        if count > 1:
            yield f"the job of {token} is there {count} times"
        if token not in story.intended:
            yield f"a job of {token} exists, which nobody enqueued"
        elif token in story.rolled_back:
            yield f"the job of {token} exists, whose transaction was rolled back"
    for token, (id_, _) in story.duplicates.items():
        if id_ not in by_id:
            yield f"job {id_}, of which {token} was told to be a duplicate, does not exist"
        if token in by_token:
            yield f"the job of {token} exists, and its caller was told that it is a duplicate"


def _claims(story: Story, rows: list[Row]) -> Iterator[str]:
    """No claim is run twice, none is beyond what the row counts, and only one completes its job."""
    states = {row.id: row.state for row in rows}
    for id_, count in story.completions.items():
        if count > 1:
            yield f"job {id_} was completed {count} times, as its workers say"
        if states.get(id_) != "completed":
            yield f"job {id_} is {states.get(id_)}, and a worker said that it is completed"
    claims = {row.id: row.claims for row in rows}
    for (id_, number), count in story.began.items():
        if count > 1:
            yield f"claim {number} of job {id_} was run {count} times"
        if id_ in claims and number > claims[id_]:
            yield f"job {id_} was run under claim {number}, and its row has had {claims[id_]}"


def _effects(rows: list[Row], effects: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Exactly one of each completed job that leaves them, none of any other."""
    left: dict[int, list[int]] = defaultdict(list)
    for id_, claims in effects:
        left[id_].append(claims)
    for row in rows:
        expected = [row.claims] if row.kind in FENCED and row.state == "completed" else []
        if left.pop(row.id, []) != expected:
            yield f"the effects of job {row.id} ({row.kind}, {row.state}) are not exact"
    if left:
        yield f"effects of jobs that do not exist: {sorted(left)}"


def _end(story: Story, row: Row) -> Iterator[str]:
    """Each end is explained."""
    who = f"job {row.id} ({row.kind})"
    if row.state in LIVE:
        yield f"{who} is stuck: {row.state}, attempt {row.attempt}, claims {row.claims}"
    if not 0 <= row.attempt <= min(row.max_attempts, row.claims):
        yield f"{who} has attempt {row.attempt} of {row.max_attempts}, with {row.claims} claims"
    if any(not 1 <= attempt <= row.max_attempts for attempt in story.attempts[row.id]):
        yield f"{who} was run as attempts {story.attempts[row.id]}, of {row.max_attempts}"
    if (row.finalized_at is None) != (row.state in LIVE):
        yield f"{who} is {row.state}, and its finalized_at is {row.finalized_at}"
    if row.state == "completed":
        # One that completes itself may be killed between the commit and its end; its effect shows that it ran.
        if not story.ended[row.id, row.claims] and row.kind != "effect_by_hand":
            yield f"{who} is completed, and the claim that completed it never came to its end"
        if row.kind not in LASTING:
            yield f"{who} is completed, which it can't be"
    if row.state == "failed" and row.kind in LASTING:
        yield f"{who} is a dead letter: {row.error_class}"
    if row.state == "failed" and row.attempt < row.max_attempts:
        yield f"{who} is a dead letter after {row.attempt} of {row.max_attempts} attempts: {row.error_class}"
    if row.state == "cancelled" and row.id not in story.cancels:
        yield f"{who} is cancelled, and nobody cancelled it"
    if row.id in story.cancelled and row.state not in ("cancelled", "completed"):
        yield f"{who} is {row.state}, and an operator was told that it is cancelled"


def _keys(story: Story, rows: list[Row]) -> Iterator[str]:
    """Who was told of a duplicate was told of a job that had not ended when it asked."""
    by_id = {row.id: row for row in rows}
    for token, (id_, asked_at) in story.duplicates.items():
        row = by_id.get(id_)
        # A row's time is when the statement began that ended it; it took effect a little later.
        if row is not None and row.finalized_at is not None and row.finalized_at < asked_at - SLOWEST_COMMIT:
            yield f"the job of {token} was a duplicate of job {id_}, which had ended long before: it never ran"
    for row in rows:
        if row.holds_key and row.state not in LIVE:
            yield f"job {row.id} is {row.state}, and holds its key"


# Seconds from the beginning of a statement until others see what it did: longer than any statement may take here.
SLOWEST_COMMIT = 10.0


def _failures(story: Story, may_be_away: bool) -> Iterator[str]:
    """What callers met."""
    for failure in story.failures:
        away = failure["error"] in ("OperationalError", "InterfaceError") and failure["sqlstate"] in AWAY
        if not (may_be_away and away):
            yield f"a caller met {failure['error']} {failure['sqlstate'] or ''}: {failure['message'].strip()}"
