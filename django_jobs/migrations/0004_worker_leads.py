from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("django_jobs", "0003_permissions"),
        ("django_jobs", "0003_stat"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="leads",
            field=models.BooleanField(db_default=False, default=False, verbose_name="does the maintenance"),
        ),
    ]
