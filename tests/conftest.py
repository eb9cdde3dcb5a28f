"""Settings of all tests: generated cases are seeded, so that a failure comes back."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "seeded",
    deadline=None,  # the machines are shared, and the first call may compile a kernel
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seeded")
