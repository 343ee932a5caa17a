import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, until, waitForDelivery } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const api = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

/** Returns the number of attempts by outcome, from `/metrics`. */
async function counts(): Promise<Record<string, number>> {
  const { text } = await apiAt(service.url).get("/metrics");
  const lines = text.matchAll(/^linkgate_webhook_attempts_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
}

test("the metrics count attempts that succeeded, are retried, failed or were not sent", async (t) => {
  t.deepEqual(await counts(), { succeeded: 0, retried: 0, failed: 0, unsent: 0 });
  for (const [path, status] of [
    ["/fine", 204],
    ["/weak", 500],
    ["/gone", 410],
  ] as const) {
    receiver.respond(path, (response) => response.writeHead(status).end());
    const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
    await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
    await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
    if (status !== 500) continue;
    await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: false } });
    advanceClock(10_000);
    await waitForDelivery(api, webhook, ({ status }) => status === "failed");
  }
  // Each webhook was verified first.
  const expected = { succeeded: 4, retried: 1, failed: 1, unsent: 1 };
  await until(async () => Object.values(await counts()).every((count) => count > 0) || undefined);
  t.deepEqual(await counts(), expected);
});
