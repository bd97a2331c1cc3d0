"""What joins the SDK to other projects' packages; each module needs its own extra, and nothing else imports it.

opentelemetry   spans, and their context in message properties
prometheus      counters and durations
django/         settings, `manage.py consume`, sending on commit, an outbox with its relay and admin page
"""
