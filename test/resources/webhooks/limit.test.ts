import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type NewWebhookBody, uniqueUrl, type WebhookPage } from "../../harness/webhooks.ts";

const service = await startTestService();
test.after.always(() => service.close());

const LIMIT = 20;
const newWebhook = () => ({ json: { url: uniqueUrl(), events: ["link.created"] } });

async function newOrganization(plan: "growth" | "premium" = "growth") {
  const token = await service.token(await service.createOrganization(undefined, plan));
  return { token, api: apiAt(service.url, token) };
}

for (const plan of ["growth", "premium"] as const) {
  test.serial(
    `an organization on ${plan} can create ${LIMIT} webhooks, the limit that the API reports`,
    async (t) => {
      const { api } = await newOrganization(plan);
      for (let created = 0; created < LIMIT; created++) await createWebhook(api, uniqueUrl());
      const rejected = await api.send("POST", "/v1/webhooks", newWebhook());
      isProblem(t, rejected, { status: 409, code: "webhook_limit" });
      t.regex(rejected.body.detail, /20 webhooks/);
      const { body } = await api.get<{ limits: { webhooks: number } }>("/v1/organization");
      t.is(body.limits.webhooks, LIMIT);
      t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
    },
  );
}

test.serial("deleting a webhook frees capacity for one, disabling does not", async (t) => {
  const { api } = await newOrganization();
  const created = await atOnce(LIMIT, () => createWebhook(api, uniqueUrl()));
  const [first, second] = created as [NewWebhookBody, NewWebhookBody];
  await api.send("PATCH", `/v1/webhooks/${first.id}`, { json: { enabled: false } });
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 409);
  await api.send("DELETE", `/v1/webhooks/${second.id}`);
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 201);
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 409);
});

test.serial(`of 50 concurrent creations over REST and MCP, exactly ${LIMIT} succeed`, async (t) => {
  for (let round = 0; round < 3; round++) {
    const { api, token } = await newOrganization();
    const agent = await connectMcp(`${service.url}/mcp`, token);
    const codes = await atOnce(50, async (index) => {
      if (index % 2 === 0) {
        const { status, body } = await api.send("POST", "/v1/webhooks", newWebhook());
        return status === 201 ? "created" : body.code;
      }
      const result = await agent.callTool({ name: "create_webhook", arguments: newWebhook().json });
      return refusalOf(result)?.code ?? "created";
    });
    await agent.close();
    t.is(codes.filter((code) => code === "created").length, LIMIT);
    t.is(codes.filter((code) => code === "webhook_limit").length, 50 - LIMIT);
    t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
  }
});

test.serial("the limits of two organizations are independent", async (t) => {
  const [one, other] = [await newOrganization(), await newOrganization()];
  const answers = await atOnce(60, (index) =>
    (index % 2 ? one : other).api.send("POST", "/v1/webhooks", newWebhook()),
  );
  for (const [turn, { api }] of [other, one].entries()) {
    const mine = answers.filter((_, index) => index % 2 === turn);
    t.is(mine.filter(({ status }) => status === 201).length, LIMIT);
    t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
  }
});
