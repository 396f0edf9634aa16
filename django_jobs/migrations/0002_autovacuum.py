from typing import Any

from django.db import migrations

# Each job is written three times, so the table dies and grows faster than the defaults expect: vacuum after a fixed
# number of dead rows rather than a share of a history that may be long, and without pauses.
SETTINGS = {
    "autovacuum_vacuum_scale_factor": "0.01",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_insert_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.02",
    "autovacuum_vacuum_cost_delay": "0",
}


def apply(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        values = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
        schema_editor.execute(f"ALTER TABLE django_jobs_job SET ({values})")


def reset(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE django_jobs_job RESET ({', '.join(SETTINGS)})")


class Migration(migrations.Migration):
    dependencies = [("django_jobs", "0001_initial")]

    operations = [migrations.RunPython(apply, reset, elidable=False)]
