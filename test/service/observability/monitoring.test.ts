import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { parse } from "yaml";
import { apiAt } from "../../harness/clients/api.ts";
import { readMetrics, readMetricTypes } from "../../harness/metrics.ts";
import { ROOT, temporaryFolder } from "../../harness/program.ts";
import { HAS_PROMTOOL, PROMTOOL } from "../../harness/promtool.ts";
import { startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";

const FOLDER = `${ROOT}docs/operate/monitoring/`;
const service = await startTestService();

const api = apiAt(service.url, await service.token(await service.createOrganization()));
await Promise.all([api.get("/v1/links"), apiAt(service.url).get("/v1/links")]);

const document = readFileSync(`${ROOT}docs/operate/monitoring.md`, "utf8");

type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: { runbook: string } };
const rules: Rule[] = parse(readFileSync(`${FOLDER}alerts.yaml`, "utf8")).groups[0].rules;
const dashboard = JSON.parse(readFileSync(`${FOLDER}dashboard.json`, "utf8"));
type Panel = { title: string; targets?: { expr: string }[] };
const panels: Panel[] = dashboard.panels;

async function seriesNames(): Promise<Set<string>> {
  const types = [...(await readMetricTypes(service.url))];
  return new Set(
    types.flatMap(([name, type]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

test("every metric in the alert rules and the dashboard exists", async (t) => {
  const known = await seriesNames();
  const expressions = [
    ...rules.map(({ alert, expr }) => [alert, expr]),
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr])),
    ...dashboard.templating.list.map(({ name, query }: { name: string; query: string }) => [name, query]),
  ];
  let count = 0;
  for (const [where, expression = ""] of expressions)
    for (const [name] of expression.matchAll(/\blinkgate_\w+/g)) {
      count++;
      t.true(known.has(name), `${name} of ${where}`);
    }
  t.true(count > 40);
});

test("every alert names a section of the documentation that says what to do", (t) => {
  for (const { alert, annotations, labels } of rules) {
    t.is(annotations.runbook, `monitoring.md#${alert.toLowerCase()}`);
    t.true(["critical", "warning", "info"].includes(labels.severity), alert);
    t.regex(document, new RegExp(`^### ${alert}$`, "m"));
  }
});

const run = (...words: string[]) => execFileSync(PROMTOOL, words, { cwd: FOLDER, encoding: "utf8" });

function testWithPromtool(title: string, check: (t: ExecutionContext) => void): void {
  if (HAS_PROMTOOL) test(title, check);
  else skip(title, "promtool is not installed");
}

testWithPromtool("promtool accepts every query of the dashboard", (t) => {
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  // What Grafana replaces before it sends a query.
  const rules = queries.map((expr, index) => ({
    record: `query:${index}`,
    expr: expr
      .replaceAll("$__rate_interval", "5m")
      .replaceAll("$job", "linkgate")
      .replaceAll("$instance", ".*"),
  }));
  const file = path.join(temporaryFolder("dashboard"), "queries.yaml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  t.regex(run("check", "rules", file), new RegExp(`SUCCESS: ${queries.length} rules found`));
});

testWithPromtool("promtool accepts the alert rules, and raises each when it should, and only then", (t) => {
  t.regex(run("check", "rules", "alerts.yaml"), new RegExp(`SUCCESS: ${rules.length} rules found`));
  t.regex(run("test", "rules", "alerts.test.yaml"), /SUCCESS/);
  const raised = readFileSync(`${FOLDER}alerts.test.yaml`, "utf8").match(/(?<=alertname=")\w+/g);
  t.is(raised?.join(), rules.map(({ alert }) => alert).join());
});

const rows = [...document.matchAll(/^\| `(linkgate_\w+)` \| (\w+) \| (.*?) \|/gm)];

test("the documentation lists every metric with its type, and no other", async (t) => {
  const documented = rows.map(([, name = "", type = ""]): [string, string] => [name, type]);
  const served = [...(await readMetricTypes(service.url))];
  t.deepEqual(documented.sort(), served.sort());
});

test("the documentation lists the labels of every metric", async (t) => {
  const labels = new Map(
    rows.map(([, name = "", , cell = ""]) => [
      name,
      new Set([...cell.matchAll(/`(\w+)`/g)].map(([, label]) => label)),
    ]),
  );
  for (const key of (await readMetrics(service.url)).keys()) {
    const [, series = "", list = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(key) ?? [];
    const name = labels.has(series) ? series : series.replace(/_(bucket|sum|count)$/, "");
    for (const [, label = ""] of list.matchAll(/(\w+)="/g))
      t.true(label === "le" || labels.get(name)?.has(label), `${label} of ${name}`);
  }
});
