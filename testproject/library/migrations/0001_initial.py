from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Document",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(max_length=1024, unique=True)),
                (
                    "kind",
                    models.CharField(help_text="The file name's suffix, without the dot.", max_length=32),
                ),
                ("bytes", models.PositiveBigIntegerField()),
                ("lines", models.PositiveIntegerField()),
                ("words", models.PositiveIntegerField()),
                (
                    "definitions",
                    models.PositiveIntegerField(default=0, help_text="Functions and classes; Python only."),
                ),
                ("definition_names", models.JSONField(blank=True, default=list)),
                (
                    "syntax_error",
                    models.CharField(
                        blank=True,
                        help_text="Why the definitions of a Python file could not be read.",
                        max_length=255,
                    ),
                ),
                ("indexed_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["path"],
            },
        ),
    ]
