"""Settings of all tests: generated cases are seeded, so that a failure comes back."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "seeded",
    deadline=None,  # the machines are shared, and the first call may compile a kernel
    derandomize=True,
    max_examples=int(os.environ.get("MATCHMILL_EXAMPLES", "25")),  # the slow suite asks for more
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seeded")
