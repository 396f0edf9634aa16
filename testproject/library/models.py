from django.db import models


class Document(models.Model):
    """What one file held when it was last indexed."""

    path = models.CharField(max_length=1024, unique=True)
    kind = models.CharField(max_length=32, help_text="The file name's suffix, without the dot.")
    bytes = models.PositiveBigIntegerField()
    lines = models.PositiveIntegerField()
    words = models.PositiveIntegerField()
    definitions = models.PositiveIntegerField(default=0, help_text="Functions and classes; Python only.")
    definition_names = models.JSONField(default=list, blank=True)
    syntax_error = models.CharField(
        max_length=255, blank=True, help_text="Why the definitions of a Python file could not be read."
    )
    indexed_at = models.DateTimeField()

    class Meta:
        ordering = ["path"]

    def __str__(self) -> str:
        return self.path
