"""Pages that change something say how a shell does the same."""

from __future__ import annotations

import html

from dashboard.alerts.kinds import KINDS
from dashboard.cluster.gateway import Gateway
from dashboard.forms.rest_bodies import BODIES
from dashboard.models.alerts import AlertChannel, AlertRule
from dashboard.models.management import User
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.conftest import Client, Topic


async def test_a_form_stands_beside_its_lines_for_a_shell(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    client, topic = await log_in("admin"), await make_topic("in-a-shell", queues=3)
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig("in-a-shell-group"))
    config = {"do": "look", "set.fileReservedTime": "49"}
    for answer, admin, method, address in (
        (await client.get("/topics/create"), "topics create orders -q 8 --perm rw", "POST", "topics"),
        (await client.get(f"/topic/{topic}/settings"), f"topics set {topic} -q 3 --perm rw", "PUT", f"topics/{topic}"),
        (await client.get(f"/topic/{topic}/delete"), f"topics delete {topic}", "DELETE", f"topics/{topic}"),
        (
            await client.get("/group/in-a-shell-group/delete"),
            "groups delete in-a-shell-group",
            "DELETE",
            "groups/in-a-shell-group",
        ),
        (
            await client.post("/broker/broker-a/settings", config),
            "config set fileReservedTime=49 -b broker-a",
            "PUT",
            "brokers/broker-a/settings",
        ),
    ):
        page = html.unescape(answer.content.decode())
        assert f"gantry admin {admin} -n " in page, admin
        assert f"curl -X {method} " in page and f"http://testserver/api/v1/{address}" in page, admin


async def test_what_only_rest_can_do_has_its_curl_line(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    client, topic = await log_in("admin"), await make_topic("in-a-shell-rest", queues=1)
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig("in-a-shell-rest"))
    reader = await User.objects.aget(username="reader")
    for page, method, address, body in (
        (f"/group/{topic}", "PUT", f"groups/{topic}/consuming", '{"is_on": false}'),
        (f"/topic/{topic}?send=1", "POST", f"topics/{topic}/messages", '{"body": "hello"}'),
        ("/tokens", "POST", "tokens", '{"name": "CI", "scope": "read", "life_days": 90}'),
        ("/users", "POST", "invitations", '{"label": "Ada, orders team", "role": "reader"}'),
        (f"/users/{reader.pk}", "PUT", "users/reader", '{"role": "reader"}'),
    ):
        shown = html.unescape((await client.get(page)).content.decode())
        line = f'curl -X {method} -H "Authorization: Bearer $GANTRY_TOKEN" http://testserver/api/v1/{address} '
        assert f"{line}-H 'Content-Type: application/json' -d '{body}'" in shown, page
    assert f"gantry admin send {topic} hello -n " in (await client.get(f"/topic/{topic}?send=1")).content.decode()
    kept = {"kind": next(iter(KINDS)), "threshold": 1, "clear": 1, "for_s": 0, "clear_s": 0, "level": 1}
    rule = await AlertRule.objects.acreate(name="in-a-shell", **kept)
    shown = html.unescape((await client.get(f"/alerts/rules/{rule.pk}")).content.decode())
    assert "curl -X DELETE " in shown and f"http://testserver/api/v1/alerts/rules/{rule.pk}" in shown
    assert '"for_s": 0, "clear_s": 0' in shown, "as the form would save it"


async def test_what_is_wrong_in_a_form_is_said_beside_its_field_and_not_lost_in_its_lines(log_in: Client) -> None:
    client = await log_in("operator")
    assert (await client.get("/alerts/mutes/new?rule=no-number")).status_code == 200
    until = {"rule": "no-number", "until": "1 h", "reason": "maintenance"}
    assert (await client.post("/alerts/mutes/new", until)).status_code == 422
    await AlertChannel.objects.acreate(name="in-a-shell", kind="webhook", is_on=True)
    rule = {"name": "wrong", "kind": "group-lag", "threshold": "1e999", "level": "1", "channels": "no-number"}
    answer = await client.post("/alerts/rules/new", rule)
    assert answer.status_code == 422 and '"threshold": "1e999"' in html.unescape(answer.content.decode())
    assert BODIES["weekly"]({"channels": ["no-number", "3"], "cron": "", "zone": ""}) == {
        "channel_ids": ["no-number", 3]
    }
