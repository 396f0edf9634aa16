from django.db import models


class Effect(models.Model):
    """What a job left behind: one row for each time that it came to its end."""

    job_id = models.BigIntegerField()
    claims = models.IntegerField()
    pid = models.IntegerField()

    def __str__(self) -> str:
        return f"job {self.job_id}, claim {self.claims}"
