"""matchmill: for each event, all stored subscriptions that it satisfies."""

__all__: list[str] = []
