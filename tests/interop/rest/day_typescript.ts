// A day with the client that openapi-typescript makes: node day_typescript.js URL TOKEN GROUP.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [url, token, group] = process.argv.slice(2) as [string, string, string];
const topic = "day-typescript";
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

function check(is_so: boolean, what: unknown): asserts is_so {
  if (!is_so) throw new Error(JSON.stringify(what));
}

// What an answer holds, if it is no refusal.
function of<Data>(answer: { data?: Data; error?: unknown; response: Response }): Data {
  check(answer.error === undefined && answer.response.ok, [answer.response.status, answer.error]);
  return answer.data as Data;
}

const made = of(await client.POST("/api/v1/topics", { body: { name: topic, write_queues: 2 } }));
check(made.name === topic, made);
const at = { params: { path: { name: topic } } };
const sent = of(await client.POST("/api/v1/topics/{name}/messages", { ...at, body: { body: '{"order": 17}', keys: ["order-17"], tag: "paid" } }));
check(sent.topic === topic, sent);
const topics = of(await client.GET("/api/v1/topics", { params: { query: { q: "day-" } } }));
check(topics.items.some((one) => one.name === topic), topics);
const since = new Date(Date.now() - 3_600_000).toISOString();
const found = of(await client.GET("/api/v1/topics/{name}/messages", { params: { path: { name: topic }, query: { q: "$.order=17", since } } }));
check(found.items.length === 1 && found.items[0]!.message_id === sent.message_id, found);
const place = found.items[0]!.place;
const whole = of(await client.GET("/api/v1/topics/{name}/messages/{place}", { params: { path: { name: topic, place } } }));
check(whole.body === '{"order": 17}' && whole.tag === "paid" && whole.keys[0] === "order-17", whole);
const groups = of(await client.GET("/api/v1/groups"));
check(groups.items.some((one) => one.name === group), groups);
const moved = of(await client.POST("/api/v1/groups/{name}/reset", { params: { path: { name: group } }, body: { topics: ["day"], to: "begin", dry_run: true } }));
check(moved.items.length === 1 && !moved.items[0]!.is_done, moved);
const rule = of(await client.POST("/api/v1/alerts/rules", { body: { name: "day", kind: "group-lag", threshold: 1e6 } }));
check(of(await client.GET("/api/v1/alerts/rules")).items.some((one) => one.id === rule.id), rule);
of(await client.DELETE("/api/v1/alerts/rules/{rule_id}", { params: { path: { rule_id: rule.id } } }));
check(of(await client.GET("/api/v1/alerts")).total !== undefined, "alerts");
check(of(await client.GET("/api/v1/cluster")).brokers.length === 1, "brokers");
check(of(await client.GET("/api/v1/history", { params: { query: { kind: "in" } } })).step_s > 0, "history");
check(of(await client.GET("/api/v1/latency", { params: { query: { topic } } })).items.length === 0, "latency");
check(of(await client.PUT("/api/v1/topics/{name}", { ...at, body: { write_queues: 4 } })).name === topic, "changed");
of(await client.DELETE("/api/v1/topics/{name}", at));
const gone = await client.GET("/api/v1/topics/{name}", at);
check(gone.response.status === 404 && gone.error !== undefined, gone);
console.log("a day is over");
