"""Properties say what is true, not how fast: on a busy machine any example may take its time."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
