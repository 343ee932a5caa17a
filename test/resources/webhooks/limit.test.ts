import test from "ava";
import { apiAt, isProblem } from "../../harness/api.ts";
import { connectMcp, refusalOf } from "../../harness/mcp.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";
import { createWebhook, type NewWebhookBody, type WebhookPage } from "../../harness/webhooks.ts";

const service = await startTestService();
test.after.always(() => service.close());

const LIMIT = 20;
const NEW = { json: { url: "https://example.com/hook", events: ["link.created"] } };

async function newcomer(plan: "growth" | "premium" = "growth") {
  const token = await service.token(await service.createOrganization(undefined, plan));
  return { token, api: apiAt(service.url, token) };
}

for (const plan of ["growth", "premium"] as const) {
  test.serial(
    `sec 95: an organization on ${plan} has at most ${LIMIT} webhooks, as it is told`,
    async (t) => {
      const { api } = await newcomer(plan);
      for (let made = 0; made < LIMIT; made++) await createWebhook(api, NEW.json.url);
      const refused = await api.send("POST", "/v1/webhooks", NEW);
      isProblem(t, refused, { status: 409, code: "webhook_limit" });
      t.regex(refused.body.detail, /20 webhooks/);
      const { body } = await api.get<{ limits: { webhooks: number } }>("/v1/organization");
      t.is(body.limits.webhooks, LIMIT);
      t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
    },
  );
}

test.serial(
  "sec 95: one that is deleted makes room for one, and one that is disabled for none",
  async (t) => {
    const { api } = await newcomer();
    const made = await atOnce(LIMIT, () => createWebhook(api, NEW.json.url));
    const [first, second] = made as [NewWebhookBody, NewWebhookBody];
    await api.send("PATCH", `/v1/webhooks/${first.id}`, { json: { enabled: false } });
    t.is((await api.send("POST", "/v1/webhooks", NEW)).status, 409);
    await api.send("DELETE", `/v1/webhooks/${second.id}`);
    t.is((await api.send("POST", "/v1/webhooks", NEW)).status, 201);
    t.is((await api.send("POST", "/v1/webhooks", NEW)).status, 409);
  },
);

test.serial(
  `sec 95: of 50 webhooks made at once ${LIMIT} are made, over REST and MCP together`,
  async (t) => {
    for (let round = 0; round < 3; round++) {
      const { api, token } = await newcomer();
      const agent = await connectMcp(`${service.url}/mcp`, token);
      const codes = await atOnce(50, async (index) => {
        if (index % 2 === 0) {
          const { status, body } = await api.send("POST", "/v1/webhooks", NEW);
          return status === 201 ? "made" : body.code;
        }
        const result = await agent.callTool({ name: "create_webhook", arguments: NEW.json });
        return refusalOf(result)?.code ?? "made";
      });
      await agent.close();
      t.is(codes.filter((code) => code === "made").length, LIMIT);
      t.is(codes.filter((code) => code === "webhook_limit").length, 50 - LIMIT);
      t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
    }
  },
);

test.serial("sec 95: one organization's webhooks leave another one its own", async (t) => {
  const [one, other] = [await newcomer(), await newcomer()];
  const answers = await atOnce(60, (index) =>
    (index % 2 ? one : other).api.send("POST", "/v1/webhooks", NEW),
  );
  for (const [turn, { api }] of [other, one].entries()) {
    const mine = answers.filter((_, index) => index % 2 === turn);
    t.is(mine.filter(({ status }) => status === 201).length, LIMIT);
    t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
  }
});
