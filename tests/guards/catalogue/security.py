"""What the threat notes promise: permissions, markup, terminals, and what is hidden."""

from tests.guards.guard import Edit, Guard

ACTIONS = "admin/test_job_actions.py::TestPermissions"
QUEUES = "admin/test_queues.py::test_each_needs_its_permission_a_post_and_a_token"
WORKERS = "admin/test_workers.py::test_each_needs_the_permission_a_post_and_a_token"
SCHEDULES = "admin/test_schedules.py::test_each_needs_the_permission_a_post_and_a_token"


def _guard(name: str, file: str, old: str, new: str, *tests: str) -> Guard:
    return Guard(name, [Edit(file, old, new)], tests)


GUARDS = (
    _guard(
        "each action on jobs needs its own permission",
        "admin/job_actions.py",
        "        self.must(request, action.permission)\n",
        "",
        f"{ACTIONS}::test_each_needs_its_own",
    ),
    _guard(
        "who acts on jobs may look at them",
        "admin/job_actions.py",
        '        self.must(request, "django_jobs.view_job")\n        query',
        "        query",
        f"{ACTIONS}::test_and_that_to_look",
    ),
    _guard(
        "an action on jobs is a POST",
        "admin/job_actions.py",
        "require_POST(self.act_view)",
        "self.act_view",
        f"{ACTIONS}::test_only_by_post_and_with_a_token",
    ),
    _guard(
        "to edit a job needs a permission",
        "admin/job_edit.py",
        "        self.must(request, EDIT)\n",
        "",
        "admin/test_job_edit.py::TestWhoAndWhat::test_needs_the_permission",
    ),
    _guard(
        "to pause a queue needs a permission",
        "admin/queues.py",
        "        self.must(request, PAUSE)\n",
        "",
        QUEUES,
    ),
    _guard(
        "to purge a queue needs a permission",
        "admin/queues.py",
        "        self.must(request, PURGE)\n",
        "",
        QUEUES,
    ),
    _guard(
        "a queue is paused by a POST",
        "admin/queues.py",
        "require_POST(self.pause_view)",
        "self.pause_view",
        QUEUES,
    ),
    _guard(
        "a queue is resumed by a POST",
        "admin/queues.py",
        "require_POST(self.resume_view)",
        "self.resume_view",
        QUEUES,
    ),
    _guard(
        "to ask a worker needs a permission",
        "admin/workers.py",
        "        self.must(request, CONTROL)\n        row",
        "        row",
        WORKERS,
    ),
    _guard(
        "to see the question whether a worker is to stop needs a permission",
        "admin/workers.py",
        "        self.must(request, CONTROL)\n        if",
        "        if",
        WORKERS,
    ),
    _guard(
        "a worker is quieted by a POST",
        "admin/workers.py",
        "require_POST(self.quiet_view)",
        "self.quiet_view",
        WORKERS,
    ),
    _guard(
        "a worker claims again by a POST",
        "admin/workers.py",
        "require_POST(self.unquiet_view)",
        "self.unquiet_view",
        WORKERS,
    ),
    _guard(
        "to do something to a schedule needs a permission",
        "admin/schedules.py",
        "        self.must(request, RUN)\n",
        "",
        SCHEDULES,
    ),
    _guard(
        "it is done to a schedule by a POST",
        "admin/schedules.py",
        "require_POST(function)",
        "function",
        SCHEDULES,
    ),
    _guard(
        "to see rows needs a permission",
        "admin/room.py",
        "        self.must(request, self.view_permission)\n        return self.list_page",
        "        return self.list_page",
        "admin/test_overview.py::test_who_may_not_see_a_page_gets_none",
    ),
    _guard(
        "to see one row needs a permission",
        "admin/room.py",
        "        self.must(request, self.view_permission)\n        return self.one_page",
        "        return self.one_page",
        "admin/test_job_page.py::test_nobody_else_sees_it",
    ),
    _guard(
        "to have a part of a job as JSON needs a permission",
        "admin/job_page.py",
        '        self.must(request, "django_jobs.view_job")\n',
        "",
        "admin/test_job_page.py::test_nobody_else_sees_it",
    ),
    _guard(
        "a form leads to no other site",
        "admin/room.py",
        'wanted if safe and wanted.startswith("/")',
        "wanted if wanted",
        "admin/test_queues.py::test_nobody_is_sent_to_another_site",
    ),
    _guard(
        "keys in JSON are escaped",
        "admin/json_display.py",
        'format_html_join("", "<dt>{}</dt><dd>{}</dd>", shown)',
        'mark_safe("".join(f"<dt>{key}</dt><dd>{each}</dd>" for key, each in shown))',
        "admin/test_json_display.py::test_hostile_values_and_keys_are_escaped",
    ),
    _guard(
        "no template marks anything as safe",
        "templates/admin/django_jobs/job.html",
        "{{ job.queue_name }}",
        "{{ job.queue_name|safe }}",
        "hostile/test_security.py::TestTheCode::test_marks_little_as_safe_and_no_template_turns_escaping_off",
        "admin/test_job_page.py::test_hostile_data_in_every_field",
    ),
    # (SQLite tells nothing of the row.)
    Guard(
        "details of an error of the database are left out",
        [
            Edit(
                "worker/parts.py",
                "    text = _MORE.split(str(error), maxsplit=1)[0]\n",
                "    text = str(error)\n",
            )
        ],
        ["hostile/test_security.py::test_an_error_of_the_database_is_logged_without_the_row"],
        ["postgresql"],
    ),
    _guard(
        "hidden values do not come again in errors",
        "redaction.py",
        "self._without(self.redactor.value(self.job.errors))",
        "self.redactor.value(self.job.errors)",
        "admin/test_job_page.py::test_secrets_are_hidden_everywhere",
    ),
    _guard(
        "arguments are hidden by the names of parameters",
        "redaction.py",
        "HIDDEN if self._hides_position(place) else self.value(each)",
        "self.value(each)",
        "admin/test_job_page.py::test_secrets_are_hidden_everywhere",
    ),
    _guard(
        "hidden values do not come again in a unique key",
        "redaction.py",
        "None if key is None else self.text(key)",
        "key",
        "admin/test_job_page.py::test_secrets_are_hidden_everywhere",
    ),
    _guard(
        "hidden values do not come again where a schedule is run by hand",
        "admin/schedules.py",
        "schedule_errors.redacted(schedule.name, schedule.args, schedule.kwargs, error.translated)",
        "error.translated",
        "admin/test_schedules.py::test_and_tells_nothing_that_is_hidden",
    ),
    _guard(
        "nor where a command does it",
        "management/jobs/workers.py",
        "redacted(row.name, row.args, row.kwargs, str(error))",
        "str(error)",
        "test_jobs_command.py::TestSchedules::test_run_now_tells_nothing_that_is_hidden",
    ),
    _guard(
        "the health views answer GET and HEAD alone",
        "health/views.py",
        "never_cache(require_safe(view))",
        "never_cache(view)",
        "health/test_views.py::test_who_may_ask_and_how",
    ),
    _guard(
        "the health views name nothing unless they are told to",
        "health/views.py",
        "    if conf.health().details:\n",
        "    if True:\n",
        "health/test_views.py::test_it_says_no_more_than_it_is_told_to",
    ),
)
