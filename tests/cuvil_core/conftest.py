"""Settings of the compiler's tests: no deadline for single examples, since machines that run tests are often busy."""

from hypothesis import settings

settings.register_profile("cuvil", deadline=None)
settings.load_profile("cuvil")
