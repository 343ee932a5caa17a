import type { ServerResponse } from "node:http";
import test from "ava";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const newApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const WEBHOOKS = 20;
const SLOW_MS = 12_000;
// The ceiling per organization; without one, a single organization could occupy all 200 attempts of a process.
const PER_ORGANIZATION = 40;
const paths = Array.from({ length: WEBHOOKS }, (_, index) => `/slow-${index}`);
const timers = new Set<NodeJS.Timeout>();
test.after.always(() => timers.forEach(clearTimeout));

/** Accepts every request, but only after 12 s. */
function acceptSlowly(response: ServerResponse) {
  timers.add(setTimeout(() => response.writeHead(200).end(), SLOW_MS));
}

async function createLinks(api: Api, count: number) {
  const links = Array.from({ length: count }, () => ({ url: "https://example.com/" }));
  await api.send("POST", "/v1/links/bulk", { json: { links } });
}

test("20 slow endpoints with 4,000 waiting deliveries don't delay another organization's event", async (t) => {
  const [hostile, other] = [await newApi(), await newApi()];
  for (const path of paths) await createWebhook(hostile, receiver.url(path));
  await createWebhook(other, receiver.url("/other"));
  for (const path of paths) receiver.respond(path, acceptSlowly);
  await createLinks(hostile, 100);
  await createLinks(hostile, 100);
  await Promise.all(paths.map((path) => receiver.waitFor(path, 1)));
  const start = performance.now();
  await other.createLink();
  await receiver.waitFor("/other", 1);
  const slow = paths.reduce((sum, path) => sum + receiver.received(path).length, 0);
  t.true(slow <= PER_ORGANIZATION, `${slow} requests to slow endpoints`);
  t.log(`delivered after ${Math.round(performance.now() - start)} ms`);
});
