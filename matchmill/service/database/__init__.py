"""What the service keeps: subscriptions, events, mailboxes and keys, in SQLite or PostgreSQL."""
