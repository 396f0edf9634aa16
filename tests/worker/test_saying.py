"""What runjobs says, where its stream can't have all of it."""

import io

from django_jobs.management.commands.runjobs import Command


def test_letters_that_the_locale_has_not_are_escaped_and_it_goes_on_speaking() -> None:
    written = io.BytesIO()
    command = Command(stdout=io.TextIOWrapper(written, encoding="ascii"))

    command.say("Working on \u043f\u043e\u0447\u0442\u0430 (1).")
    command.say("Stopped.")

    assert written.getvalue().decode("ascii").splitlines() == [
        r"Working on \u043f\u043e\u0447\u0442\u0430 (1).",
        "Stopped.",
    ]
