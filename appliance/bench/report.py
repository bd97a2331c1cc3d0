"""Prints the benchmark's tables."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.bench.results import BenchResults, LoadMetrics, ScenarioMetrics

_MIB = 1 << 20


def render(results: BenchResults) -> str:
    """All results as text."""
    names = [f"{label}: {version}" for label, version in results.peers.items()]
    parts = ["The same load, the same settings, one run.\n" + "\n".join(names)]
    throughput = [metrics for metrics in results.scenarios if metrics.loads and metrics.kind != "latency"]
    if throughput:
        parts.append(_throughput(throughput, results.base))
        parts += [text for text in (_costs(throughput), *map(_fsyncs, throughput)) if text]
    parts += [
        _latency(metrics, results.base) for metrics in results.scenarios if metrics.loads and metrics.kind == "latency"
    ]
    parts += [_starts(metrics) for metrics in results.scenarios if metrics.starts]
    if results.memory_after_load:
        parts.append(_memory_after_load(results))
    warnings = results.warnings()
    parts.append("\n".join(f"! {text}" for text in warnings) if warnings else "No warnings.")
    return "\n\n".join(parts) + "\n"


def _throughput(scenarios: Sequence[ScenarioMetrics], base: str) -> str:
    head = ("load (connections x in flight)", "broker", "messages/s", "ratio", "worst", "CPU us/msg", "ratio", "worst")
    rows: list[tuple[str, ...]] = [(*head, "slave us/msg", "p50 ms", "p99 ms", "max ms", "load CPU")]
    for metrics in scenarios:
        for index, (label, load) in enumerate(metrics.loads.items()):
            rows.append((metrics.title if index == 0 else "", label, *_load_cells(metrics, label, load, base)))
    return table(_without_empty_columns(rows)) + (
        f"\nMedians. ratio: beside {base}, of rates higher is better, of CPU lower; worst: of the rounds."
        "\nload CPU: share of one core that the load generator used while measuring; near 100 % it may be the limit."
    )


def _load_cells(metrics: ScenarioMetrics, label: str, load: LoadMetrics, base: str) -> tuple[str, ...]:
    compared = metrics.compared(label, base)
    return (
        f"{load.rate:,.0f}",
        *(("", "") if compared is None else (f"{compared.rate:.2f}", f"{compared.rate_worst:.2f}")),
        f"{load.broker_cpu_us:.1f}",
        *(("", "") if compared is None else (f"{compared.cpu:.2f}", f"{compared.cpu_worst:.2f}")),
        f"{load.slave_cpu_us:.1f}" if load.slave_cpu_us else "",
        *((f"{load.p50_ms:.2f}", f"{load.p99_ms:.2f}", f"{load.max_ms:.1f}") if load.p99_ms else ("", "", "")),
        f"{load.load_cpu_share:.0%}",
    )


def _costs(scenarios: Sequence[ScenarioMetrics]) -> str:
    """The cost of a message in one scenario, divided by that in another."""
    by_name = {metrics.name: metrics for metrics in scenarios}
    rows: list[tuple[str, ...]] = [("CPU a message", "beside", "broker", "us", "us there", "ratio")]
    for metrics in scenarios:
        other = by_name.get(metrics.against)
        for label, load in metrics.loads.items():
            if other is not None and (there := other.loads.get(label)) and there.broker_cpu_us:
                ratio = load.broker_cpu_us / there.broker_cpu_us
                cells = (f"{load.broker_cpu_us:.1f}", f"{there.broker_cpu_us:.1f}", f"{ratio:.2f}")
                rows.append((metrics.title, other.title, label, *cells))
    return table(rows) if len(rows) > 1 else ""


def _fsyncs(metrics: ScenarioMetrics) -> str:
    if not metrics.fsyncs_per_s:
        return ""
    each = ", ".join(f"{rate:,.0f}" for rate in metrics.fsyncs_per_s)
    return f"{metrics.title}: beside it, 1 KB and fdatasync on the same disk, a second: {each}"


def _latency(metrics: ScenarioMetrics, base: str) -> str:
    rows = [(metrics.title, "broker", "p50 ms", "p99 ms", "ratio of p99")]
    for title, p50, p99 in (("send to answer", "ack_p50_ms", "ack_p99_ms"), ("send to consumer", "p50_ms", "p99_ms")):
        for label, load in metrics.loads.items():
            peer = metrics.loads.get(base) if label != base else None
            ratio = "" if peer is None else _ratio(getattr(load, p99), getattr(peer, p99))
            rows.append((title, label, f"{getattr(load, p50):.2f}", f"{getattr(load, p99):.2f}", ratio))
            title = ""
    return table(rows) + f"\nratio: beside {base}, lower is better."


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
    return table(rows) + "\nratio: GantryMQ / Apache RocketMQ, lower is better. Memory excludes mapped store files."


def _memory_after_load(results: BenchResults) -> str:
    rows = [("memory after the loads", *results.memory_after_load, "ratio")]
    for name in next(iter(results.memory_after_load.values())):
        values = {label: memory[name] / _MIB for label, memory in results.memory_after_load.items()}
        ratio = _ratio(values["gantry"], values["apache"]) if {"gantry", "apache"} <= values.keys() else ""
        title = name.removesuffix("_bytes").replace("_", ", ").replace("rss", "RSS").replace("pss", "PSS")
        rows.append((title, *(f"{value:,.0f} MiB" for value in values.values()), ratio))
    return table(rows)


def _ratio(gantry: float, apache: float) -> str:
    return f"{gantry / apache:.2f}" if apache else ""


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    filled = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
    return [[row[column] for column in filled] for row in rows]


def table(rows: Sequence[Sequence[str]]) -> str:
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
