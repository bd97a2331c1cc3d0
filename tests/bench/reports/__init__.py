"""What reports cost, over logs of a million and of ten million messages (--messages, --body-bytes).

python -m tests.bench.reports

Cold and warm starts, reading the log, each report, and the same by DuckDB if that is installed. Then a broker's latency
at 1 000 messages a second, alone and beside runs, in slices that take turns (--rounds, --seconds, --rate; --rounds 0
leaves it out).
"""
