"""Google's Cloud Translation API v3."""
