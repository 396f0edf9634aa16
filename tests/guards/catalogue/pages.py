"""The operations room, and rows that nobody means."""

from tests.guards.guard import Edit, Guard

TEMPLATES = "templates/admin/django_jobs"
ACTIONS = "admin/test_job_actions.py"
LIST = "admin/test_job_list.py::TestLines::test_hostile_data_in_every_field"
PAGE = "admin/test_job_page.py::test_hostile_data_in_every_field"
BROWSER = "browser/test_pages.py::test_hostile_rows_run_nothing_and_break_no_layout"
ROWS = "hostile/test_rows.py"
WALKS = "admin/test_plans.py::test_no_page_walks_through_the_jobs"


def _unescaped(what: str, template: str, old: str, test: str) -> Guard:
    """A value of a template that is taken for markup: ``{{ old }}``."""
    return Guard(
        f"{what} is escaped",
        [Edit(f"{TEMPLATES}/{template}.html", f"{{{{ {old} }}}}", f"{{{{ {old}|safe }}}}")],
        [test],
    )


GUARDS = (
    Guard(
        "states are counted off their indexes (PostgreSQL)",
        [
            Edit(
                "sql/postgresql/count_states.sql",
                "state = 'failed' AND finalized_at IS NOT NULL",
                "state = 'failed'",
            )
        ],
        [WALKS],
        ["postgresql"],
    ),
    Guard(
        "states are counted off their indexes (SQLite)",
        [
            Edit(
                "sql/sqlite/count_states.sql",
                "state = 'failed' AND finalized_at IS NOT NULL",
                "state = 'failed'",
            )
        ],
        [WALKS],
        ["sqlite"],
    ),
    Guard(
        "a name that may be broken is escaped",
        [
            Edit(
                "templatetags/django_jobs_admin.py",
                'format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts if part))',
                'mark_safe("<wbr>".join(part for part in parts if part))',
            )
        ],
        [LIST],
    ),
    Guard(
        "a short name is escaped",
        [
            Edit(
                "templatetags/django_jobs_admin.py",
                'format_html(\'<span title="{}">{}</span>\', name, name.rpartition(".")[2] or name)',
                'mark_safe(f\'<span title="{name}">{name.rpartition(".")[2] or name}</span>\')',
            )
        ],
        [BROWSER],
    ),
    Guard(
        "a text in JSON is escaped",
        [
            Edit(
                "admin/json_display.py",
                "return format_html('<code class=\"dj-json-text\">{}</code>', shown)",
                "return mark_safe(f'<code class=\"dj-json-text\">{shown}</code>')",
            )
        ],
        [PAGE],
    ),
    _unescaped("a message of an error", "job", "attempt.message", PAGE),
    _unescaped("arguments in a list", "jobs", "line.arguments", LIST),
    Guard(
        "of what was selected each is told that is left as it was",
        [
            Edit(
                "admin/job_actions.py",
                'messages.warning(request, format_html("{} {}", text,',
                '(request, format_html("{} {}", text,',
            )
        ],
        [f"{ACTIONS}::TestSelected::test_retry"],
    ),
    Guard(
        "what an action left as it was is counted, with the reason",
        [Edit("operations/results.py", "        self.skipped[why] += 1\n")],
        ["admin/test_log.py::test_with_how_many_there_were_and_why_others_were_left"],
    ),
    Guard(
        "a row's name is looked up in the registry, and imports nothing",
        [
            Edit(
                "job_registry.py",
                "        return known if known is not None else declared_tasks.find(name)\n",
                "        if known is None and isinstance(name, str) and '.' in name:\n"
                "            import contextlib, importlib\n"
                "            with contextlib.suppress(ImportError, ValueError):\n"
                "                importlib.import_module(name.rpartition('.')[0])\n"
                "        return known if known is not None else declared_tasks.find(name)\n",
            )
        ],
        [
            (
                "hostile/test_security.py::TestARowThatNamesCode::"
                "test_is_shown_retried_edited_and_deleted_but_imports_nothing"
            )
        ],
    ),
    Guard(
        "JSON that does not decode is shown as it is stored",
        [
            Edit(
                "serialization.py",
                "    try:\n        return decode(text)\n    except ValueError:\n        return Undecodable(text)\n",
                "    return decode(text)\n",
            )
        ],
        [f"{ROWS}::test_every_page", f"{ROWS}::test_every_operation", f"{ROWS}::test_every_command"],
    ),
    Guard(
        "the greatest number of claims keeps no other job from being claimed (PostgreSQL)",
        [Edit("sql/postgresql/claim.sql", "claims = claims % 2147483647 + 1", "claims = claims + 1")],
        ["hostile/test_found.py::test_the_greatest_number_of_claims_begins_again"],
        ["postgresql"],
    ),
    Guard(
        "a time that Python does not have hides no claim (PostgreSQL)",
        [
            Edit(
                "store/postgresql_session.py",
                '    context.adapters.register_loader("timestamptz", TextLoader)\n',
            )
        ],
        [f"{ROWS}::test_the_worker"],
        ["postgresql"],
    ),
    Guard(
        "text that is no UTF-8 hides no claim (SQLite)",
        [
            Edit(
                "store/sqlite_session.py",
                '        if not str(error).startswith("Could not decode"):\n            raise\n',
                "        raise\n",
            )
        ],
        [f"{ROWS}::test_the_worker"],
        ["sqlite"],
    ),
)
