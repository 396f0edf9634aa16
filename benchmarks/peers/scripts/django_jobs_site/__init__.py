"""An app with jobs."""
