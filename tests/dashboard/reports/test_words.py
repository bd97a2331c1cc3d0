"""What reports say in the language of the page: its own words, sentences about a disk, whose days they are."""

from __future__ import annotations

from pathlib import Path

from django.utils import translation

from appliance.reports.catalogue import REPORTS
from appliance.reports.runner.broker_folders import BrokerFolder
from appliance.reports.runner.capacity import capacity
from dashboard.language.told import told_in_words
from dashboard.reports.tables import has_zone, table_context, value_in_words


def test_words_of_a_report_are_in_the_language_of_its_page_and_names_stay() -> None:
    rows = [
        {"broker": "stored", "day": f"2026-11-2{day}", "kind": kind, "bytes": 1, "low": None, "high": None}
        for day, kind in enumerate(("stored", "forecast"))
    ]
    page = {"rows": rows, "chart": {"x": ["2026-11-20"], "series": [{"name": "forecast", "values": [1]}]}}
    with translation.override("zh-hans"):
        shown = table_context(REPORTS["forecast"], page)
        assert [[cell["text"] for cell in row][:3] for row in shown["cells"]] == [
            ["stored", "2026-11-20", "已存储"],
            ["stored", "2026-11-21", "预测"],
        ]
        assert shown["figure"]["series"][0]["name"] == "预测"
        assert value_in_words("delay", "level 03") == "级别 03"
        assert value_in_words("topic", "stored") == "stored"


def test_what_the_forecast_says_of_a_disk_is_told_in_the_language_of_the_page(tmp_path: Path) -> None:
    rows = [{"broker": "broker-a", "kind": "forecast", "high": high} for high in (1 << 20, 1 << 60)]
    (tmp_path / "commitlog").mkdir()
    broker = BrokerFolder("broker-a", tmp_path, (tmp_path / "commitlog",))
    for row in rows:
        [sentence] = capacity([broker], [row])
        assert told_in_words(sentence) == sentence
        with translation.override("zh-hans"):
            assert told_in_words(sentence).startswith("broker-a：日志现占")


def test_only_reports_with_times_of_the_zone_name_it() -> None:
    assert has_zone("days") and has_zone("lag") and not has_zone("traffic") and not has_zone("sizes")


def test_why_a_run_failed_is_told_in_the_language_of_the_page() -> None:
    killed = "Spark's Java process ended during the run (killed by signal 9, as a machine does); what was"
    late = "the run took longer than 1.5e+03 s and was killed; give it more time or a shorter range"
    with translation.override("zh-hans"):
        assert "信号 9" in told_in_words(killed)
        assert told_in_words(late).startswith("运行超过 1.5e+03 秒")
