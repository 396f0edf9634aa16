"""Try the built distributions as a user has them: an environment with nothing else in it, and a site beside the clone.

    python .ci/try_wheel.py DIST

1. The wheel and the source distribution in the folder DIST have what the clone has, and the description that an index
   shows points to nothing that is not there.
2. The wheel is installed into an empty environment. In a new site the checks pass, migrations are applied, a job is
   enqueued, ``runjobs --drain`` runs it, and the admin shows it, in English, German and Spanish.
3. pytest, installed beside it, finds the plugin.

It needs the standard library alone, and says what it does. Any failure ends it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent

SETTINGS = """
INSTALLED_APPS = [*INSTALLED_APPS, "django_jobs", "shop"]
ALLOWED_HOSTS = ["testserver"]
STATIC_ROOT = BASE_DIR / "static"
DATABASES["default"]["OPTIONS"] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
MIDDLEWARE = [*MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
"""

JOBS = """
from django_jobs import job


@job(queue_name="mail")
def greet(name):
    return f"Hello, {name}"
"""

ENQUEUE = """
from shop.jobs import greet

print(greet.enqueue("Ada"))
"""

# Of what people see one word in each language shows that the catalogue is there, compiled.
LOOK = """
from django.contrib.auth.models import User
from django.test import Client
from django_jobs.models import Job

job = Job.objects.get()
assert (job.state, job.result) == ("completed", "Hello, Ada"), (job.state, job.result, job.errors)
client = Client()
client.force_login(User.objects.create_superuser("admin"))
pages = ["", "job/", f"job/{job.pk}/change/", "queue/", "worker/", "schedule/"]
for language, word in [("en", "Completed"), ("de", "Abgeschlossen"), ("es", "Completado")]:
    for page in pages:
        reply = client.get(f"/admin/django_jobs/{page}", headers={"Accept-Language": language}, follow=True)
        assert reply.status_code == 200, (page, reply.status_code)
    text = client.get(f"/admin/django_jobs/job/{job.pk}/change/", headers={"Accept-Language": language}).text
    assert "shop.jobs.greet" in text and word.lower() in text.lower(), (language, text)
print(len(pages), "pages of the admin")
"""

TEST = """
from shop.jobs import greet


def test_the_plugin_is_there(run_jobs):
    greet.enqueue("Grace")
    assert [job.result for job in run_jobs()] == ["Hello, Grace"]
"""


def look_at_description(wheel: Path) -> None:
    """Check what an index shows of the package."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        description = archive.read(name).decode().partition("\n\n")[2]
    if "pip install django-runjobs" not in description:
        sys.exit("The description does not say how to install it.")
    for found in re.findall(r"<!--|!\[|\]\((?!https?:)[^)]*\)|\bmake \w+", description):
        sys.exit(f"The description has {found!r}, which an index can't show, or which only a clone can run.")
    print(f"The description: {len(description.splitlines())} lines")


def compare(dist: Path) -> Path:
    """Check that both distributions have the clone's files. Returns the wheel."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    tracked = set(_run("git", "ls-files", folder=CLONE, quiet=True).split())
    of_package = {name for name in tracked if name.startswith("django_jobs/")} | {"django_jobs_pytest.py"}
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    for name, missing, more in [
        (wheel.name, of_package - in_wheel, in_wheel - of_package),
        (source.name, tracked - in_source - {".editorconfig"}, set()),
    ]:
        if missing or more:
            sys.exit(f"{name}: missing {sorted(missing)}, and has beside what is tracked {sorted(more)}")
    print(f"{wheel.name}: {len(in_wheel)} files; {source.name}: {len(in_source)} files")
    return wheel


def _run(*command: str | Path, folder: Path, quiet: bool = False) -> str:
    if not quiet:
        words = (
            part.name if isinstance(part, Path) else part.partition("\n")[0] or "..." for part in command
        )
        print("$", *words, flush=True)
    # None of the caller's settings, nor of its packages.
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DJANGO"))
    }
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}")
    return done.stdout


def try_out(wheel: Path, folder: Path) -> None:
    """Install the wheel below ``folder`` and use it."""
    venv.create(folder / "venv", with_pip=True)
    python, site = folder / "venv/bin/python", folder / "site"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, wheel, folder=folder)
    print(_run(python, "-m", "pip", "list", "--format=freeze", "--exclude=pip", folder=folder, quiet=True))

    site.mkdir()
    _run(python, "-m", "django", "startproject", "website", site, folder=folder)
    _run(python, "manage.py", "startapp", "shop", folder=site)
    with (site / "website/settings.py").open("a") as settings:
        settings.write(SETTINGS)
    (site / "shop/jobs.py").write_text(JOBS)
    for arguments in (
        ["check", "--fail-level", "WARNING"],
        ["migrate", "--verbosity", "0"],
        ["makemigrations", "--check", "--dry-run"],
        ["collectstatic", "--no-input"],
        ["shell", "--no-imports", "--command", ENQUEUE],
        ["runjobs", "--drain", "--fail"],
        ["shell", "--no-imports", "--command", LOOK],
    ):
        output = _run(python, "manage.py", *arguments, folder=site)
        print(output.strip())
    if not (site / "static/django_jobs/admin.css").is_file():
        sys.exit("collectstatic found no style sheet of the package")

    (site / "test_shop.py").write_text(TEST)
    _run(*pip, "pytest", "pytest-django", folder=folder)
    print(_run(python, "-m", "pytest", "-q", "--ds", "website.settings", folder=site).strip())


if __name__ == "__main__":
    wheel = compare(Path(sys.argv[1]).resolve())
    look_at_description(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        try_out(wheel, Path(temporary))
