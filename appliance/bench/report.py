"""Prints the benchmark's tables."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.bench.results import BenchResults, LoadMetrics, ScenarioMetrics

_MIB = 1 << 20


def render(results: BenchResults) -> str:
    """All results as text."""
    parts = [" against ".join(results.peers.values()) + ": the same load, the same settings, one run."]
    throughput = [metrics for metrics in results.scenarios if metrics.loads and metrics.kind != "latency"]
    if throughput:
        parts.append(_throughput(throughput))
    parts += [_latency(metrics) for metrics in results.scenarios if metrics.loads and metrics.kind == "latency"]
    parts += [_starts(metrics) for metrics in results.scenarios if metrics.starts]
    if results.memory_after_load:
        parts.append(_memory_after_load(results))
    warnings = results.warnings()
    parts.append("\n".join(f"! {text}" for text in warnings) if warnings else "No warnings.")
    return "\n\n".join(parts) + "\n"


def _throughput(scenarios: Sequence[ScenarioMetrics]) -> str:
    head = ("load (connections x in flight)", "broker", "messages/s", "ratio", "p50 ms", "p99 ms", "broker CPU us/msg")
    rows: list[tuple[str, ...]] = [(*head, "load CPU", "ceiling/s")]
    for metrics in scenarios:
        for index, (label, load) in enumerate(metrics.loads.items()):
            rows.append((metrics.title if index == 0 else "", label, *_load_cells(metrics, label, load)))
    text = _table(rows)
    return text + (
        "\nratio: GantryMQ / Apache RocketMQ, higher is better. ceiling: the same load on a server that does nothing;"
        "\nload CPU: share of one core that the load generator used while measuring."
    )


def _load_cells(metrics: ScenarioMetrics, label: str, load: LoadMetrics) -> tuple[str, ...]:
    ratio = metrics.ratio() if label == "gantry" else None
    return (
        f"{load.rate:,.0f}",
        "" if ratio is None else f"{ratio:.2f}",
        f"{load.p50_ms:.2f}",
        f"{load.p99_ms:.2f}",
        f"{load.broker_cpu_us:.1f}",
        f"{load.load_cpu_share:.0%}",
        f"{metrics.ceiling:,.0f}",
    )


def _latency(metrics: ScenarioMetrics) -> str:
    rows = [(metrics.title, "broker", "p50 ms", "p99 ms", "ratio of p99")]
    for title, p50, p99 in (("send to answer", "ack_p50_ms", "ack_p99_ms"), ("send to consumer", "p50_ms", "p99_ms")):
        for label, load in metrics.loads.items():
            peer = metrics.loads.get("apache") if label == "gantry" else None
            ratio = "" if peer is None else _ratio(getattr(load, p99), getattr(peer, p99))
            rows.append((title, label, f"{getattr(load, p50):.2f}", f"{getattr(load, p99):.2f}", ratio))
            title = ""
    return _table(rows) + "\nratio: GantryMQ / Apache RocketMQ, lower is better."


def _starts(metrics: ScenarioMetrics) -> str:
    rows = [(metrics.title, *metrics.starts, "ratio")]
    for title, name, scale, unit in (
        ("command to first message stored", "first_message_s", 1, "s"),
        ("broker idle, RSS", "broker_rss_bytes", _MIB, "MiB"),
        ("broker idle, PSS", "broker_pss_bytes", _MIB, "MiB"),
        ("namesrv idle, RSS", "namesrv_rss_bytes", _MIB, "MiB"),
        ("namesrv idle, PSS", "namesrv_pss_bytes", _MIB, "MiB"),
    ):
        values = {label: getattr(start, name) / scale for label, start in metrics.starts.items()}
        ratio = _ratio(values["gantry"], values["apache"]) if {"gantry", "apache"} <= values.keys() else ""
        rows.append((title, *(f"{value:,.2f} {unit}" for value in values.values()), ratio))
    return _table(rows) + "\nratio: GantryMQ / Apache RocketMQ, lower is better. Memory excludes mapped store files."


def _memory_after_load(results: BenchResults) -> str:
    rows = [("memory after the loads", *results.memory_after_load, "ratio")]
    for name in next(iter(results.memory_after_load.values())):
        values = {label: memory[name] / _MIB for label, memory in results.memory_after_load.items()}
        ratio = _ratio(values["gantry"], values["apache"]) if {"gantry", "apache"} <= values.keys() else ""
        title = name.removesuffix("_bytes").replace("_", ", ").replace("rss", "RSS").replace("pss", "PSS")
        rows.append((title, *(f"{value:,.0f} MiB" for value in values.values()), ratio))
    return _table(rows)


def _ratio(gantry: float, apache: float) -> str:
    return f"{gantry / apache:.2f}" if apache else ""


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the first two left, metrics right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column == 0 or not _is_numeric(rows, column) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _is_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    return any(row[column][:1].isdigit() for row in rows[1:])
