import test from "ava";
import { type Api, isProblem } from "../../harness/clients/api.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const PER_ORGANIZATION = 30;
const PER_HOST = 60;

const { receiver, createRefused, newApi } = await startWebhookService({
  RATE_LIMIT: "on",
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1,localhost",
});

/** Sends test events until one is refused. Resolves to the number of those that weren't, and the refusal. */
async function exhaust(api: Api, id: string) {
  for (let sent = 0; sent < 200; sent++) {
    const response = await api.send("POST", `/v1/webhooks/${id}/test`);
    if (response.status !== 202) return { sent, response };
  }
  throw new Error("no test event was refused");
}

test.serial("an endpoint that accepted no test event gets a limited number, however asked for", async (t) => {
  const api = await newApi("premium");
  const { id } = await createRefused(api, receiver.url("/third-party"));
  const { sent, response } = await exhaust(api, id);
  t.is(sent, PER_ORGANIZATION - 1, "creating the webhook sent one, too");
  isProblem(t, response, { status: 429, code: "rate_limited" });
  t.true(Number(response.headers.get("retry-after")) > 0);

  const json = { url: receiver.url("/third-party?2"), events: ["link.created"] };
  t.is((await api.send("POST", "/v1/webhooks", { json })).status, 429, "another URL");
  const change = (changes: object) => api.send("PATCH", `/v1/webhooks/${id}`, { json: changes });
  t.is((await change({ url: receiver.url("/third-party?3") })).status, 429, "a new URL");
  t.is((await change({ events: ["link.deleted"] })).status, 200, "which sends nothing");
  t.is((await change({ enabled: false, url: receiver.url("/third-party?4") })).status, 200);
  t.is((await change({ enabled: true })).status, 429, "enabling it sends one");
  t.true(receiver.received("/third-party").length <= PER_ORGANIZATION);
});

test.serial("all organizations together send a host a limited number per minute", async (t) => {
  const url = receiver.url("/shared").replace("127.0.0.1", "localhost");
  let total = 0;
  for (let index = 0; index < 3 && total < PER_HOST; index++) {
    const api = await newApi("premium");
    const { id } = await createRefused(api, `${url}-${index}`);
    const { sent, response } = await exhaust(api, id);
    t.is(response.status, 429);
    total += sent + 1;
  }
  t.is(total, PER_HOST);
  const json = { url, events: ["link.created"] };
  t.is((await (await newApi("premium")).send("POST", "/v1/webhooks", { json })).status, 429);
});

test.serial("test events to an endpoint that accepted one aren't limited", async (t) => {
  const api = await newApi("premium");
  const { id } = await createWebhook(api, receiver.url("/accepting"));
  for (let sent = 0; sent < PER_ORGANIZATION + 5; sent++)
    t.is((await api.send("POST", `/v1/webhooks/${id}/test`)).status, 202);
});
