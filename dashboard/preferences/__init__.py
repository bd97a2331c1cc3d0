"""How pages look to a person: theme, language, zone of times."""
