import { readFileSync } from "node:fs";
import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { readMetrics, readMetricTypes } from "../../harness/metrics.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
await Promise.all([api.get("/v1/links"), apiAt(service.url).get("/v1/links")]);
test.after.always(() => service.close());

const document = readFileSync(`${ROOT}docs/operate/monitoring.md`, "utf8");
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
