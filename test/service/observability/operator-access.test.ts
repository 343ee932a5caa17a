import { networkInterfaces } from "node:os";
import test from "ava";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";
import { freePort } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

const PUBLIC = ["host", "links.example.com"];
const LOCAL = ["host", "127.0.0.1"];
const METRICS_TOKEN = "a-token-of-the-monitoring-made-for-this-test";

async function startPublicService(settings: Record<string, string> = {}) {
  const port = await freePort();
  const service = await startServiceWithDatabase({
    PORT: String(port),
    BASE_URL: "https://links.example.com",
    SHORT_URL: "https://s.example.com",
    ...settings,
  });
  return { ...service, port, address: `http://127.0.0.1:${port}` };
}

const [plain, withToken] = await Promise.all([
  startPublicService({ HOST: "0.0.0.0" }),
  startPublicService({ METRICS_TOKEN }),
]);

const PROXIED: [what: string, headers: string[]][] = [
  ["for the public host", PUBLIC],
  ["for the public host with its port", ["host", "links.example.com:443"]],
  ["for the public host with a dot at its end", ["host", "links.example.com."]],
  ["for the host of short links", ["host", "s.example.com"]],
  ["with X-Forwarded-For", [...LOCAL, "x-forwarded-for", "127.0.0.1"]],
  ["with Forwarded", [...LOCAL, "forwarded", "for=127.0.0.1"]],
  ["with X-Real-IP", [...LOCAL, "x-real-ip", "127.0.0.1"]],
  ["with Via", [...LOCAL, "via", "1.1 proxy"]],
];

test("this machine can read /metrics, and a request that came through a proxy can't", async (t) => {
  const own = await sendRaw(plain.address, "/metrics", { headers: LOCAL });
  t.is(own.status, 200);
  t.regex(own.text, /linkgate_http_requests_total/);
  for (const [what, headers] of PROXIED) {
    const { status, text } = await sendRaw(plain.address, "/metrics", { headers });
    t.is(status, 403, what);
    t.notRegex(text, /linkgate_/);
  }
});

const network = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === "IPv4" && !one.internal);
const networkTitle =
  "a request from the network cannot read /metrics, even if it names localhost as the host";
if (!network) skip(networkTitle, "this machine has no network");
else
  test(networkTitle, async (t) => {
    const { status } = await sendRaw(`http://${network.address}:${plain.port}`, "/metrics", {
      headers: LOCAL,
    });
    t.is(status, 403);
  });

test("METRICS_TOKEN lets another machine read /metrics", async (t) => {
  const read = (headers: string[]) =>
    sendRaw(withToken.address, "/metrics", { headers: [...PUBLIC, ...headers] });
  const refused = await read([]);
  t.is(refused.status, 401);
  t.is(refused.headers["www-authenticate"], 'Bearer realm="metrics"'); // RFC 6750 §3: with a parameter
  for (const wrong of [`Bearer ${METRICS_TOKEN.slice(0, -1)}`, "Bearer ", `Basic ${METRICS_TOKEN}`])
    t.is((await read(["authorization", wrong])).status, 401, wrong);
  t.regex((await read(["authorization", `Bearer ${METRICS_TOKEN}`])).text, /linkgate_http_requests_total/);
});

test("/readyz tells only this machine why the service isn't ready", async (t) => {
  const { address, knex } = await startPublicService();
  await knex("knex_migrations").delete();
  const outside = await sendRaw(address, "/readyz", { headers: PUBLIC });
  t.is(outside.status, 503);
  t.is(outside.text, '{"status":"unavailable"}');
  const inside = await sendRaw(address, "/readyz", { headers: LOCAL });
  t.is(inside.status, 503);
  t.is(inside.text, '{"status":"not migrated"}');
  t.is((await sendRaw(address, "/healthz", { headers: LOCAL })).status, 200, "the process is alive");
});
