"""The jobs: their list, their pages, what can be done to them, what failed."""

from __future__ import annotations

from django.contrib import admin

from django_jobs.admin.failures import FailuresPage
from django_jobs.admin.job_edit import EditPage
from django_jobs.admin.job_list import JobsPage
from django_jobs.admin.overview import OverviewPage
from django_jobs.models import Job


@admin.register(Job)
class JobAdmin(JobsPage, EditPage, FailuresPage, OverviewPage):
    """The pages of the jobs, each from its own module."""
