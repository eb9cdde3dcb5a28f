"""The user's files and tables: subscriptions and events in, matches and rejected rows out."""
