import { randomUUID } from "node:crypto";
import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { ALL_ERAS, type Era, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import type { NewWebhookBody, WebhookBody } from "../../harness/webhooks.ts";

const service = await startTestService();
test.after.always(() => service.close());

const WEBHOOK = { url: "https://hooks.example.com/in", events: ["link.created"] };
const SECRET = /whsec_/;
type Shown = WebhookBody & { secret_url: string };

/** Creates an organization, with functions that call tools and the API. */
async function newOrganization() {
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  const api = apiAt(service.url, token);
  return {
    organization,
    /** Calls a tool, and returns the whole response as text with its result. */
    async call(era: Era, name: string, args: object) {
      const { message, headers } = modernRequest("tools/call", { name, arguments: args });
      const legacy = { ...message, params: { name, arguments: args } };
      const { text, rpc } = await postMcp(service.urls.mcp, era === "2026-07-28" ? message : legacy, {
        ...(era === "2026-07-28" && headers),
        ...bearer(token),
      });
      const result = rpc?.result as { structuredContent?: Shown; _meta?: { idempotency_replayed?: boolean } };
      return {
        text,
        webhook: result.structuredContent as Shown,
        isReplayed: result._meta?.idempotency_replayed,
      };
    },
    post: (path: string, key: string, json?: object) =>
      api.send<NewWebhookBody>("POST", path, { ...(json && { json }), headers: { "idempotency-key": key } }),
  };
}

for (const era of ALL_ERAS) {
  test(`${era}: no answer of a tool contains a webhook secret`, async (t) => {
    const { organization, call } = await newOrganization();
    const created = await call(era, "create_webhook", WEBHOOK);
    const { id, secret_url } = created.webhook;
    t.is(secret_url, `${service.url}/dashboard/organizations/${organization.id}/webhooks/${id}`);
    for (const { text } of [
      created,
      await call(era, "rotate_webhook_secret", { id }),
      await call(era, "get_webhook", { id }),
      await call(era, "list_webhooks", {}),
      await call(era, "update_webhook", { id, enabled: true }),
      await call(era, "test_webhook", { id }),
      await call(era, "list_webhook_deliveries", { id }),
      await call(era, "create_webhook", { ...WEBHOOK, secret: "mine" }),
      await call(era, "delete_webhook", { id }),
    ]) {
      t.notRegex(text, SECRET);
      t.false(text.includes('"secret"'));
    }
  });

  test(`${era}: a key used over REST is replayed to an agent without the secret`, async (t) => {
    const { call, post } = await newOrganization();
    const [creation, rotation] = [randomUUID(), randomUUID()];
    const created = await post("/v1/webhooks", creation, WEBHOOK);
    t.regex(created.body.secret, SECRET);
    const again = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: creation });
    t.true(again.isReplayed);
    t.is(again.webhook.id, created.body.id);
    t.notRegex(again.text, SECRET);

    const { id } = created.body;
    const rotated = await post(`/v1/webhooks/${id}/rotate-secret`, rotation);
    t.regex(rotated.body.secret, SECRET);
    const repeated = await call(era, "rotate_webhook_secret", { id, idempotency_key: rotation });
    t.true(repeated.isReplayed);
    t.notRegex(repeated.text, SECRET);
  });

  test(`${era}: a key used by an agent is replayed over REST with the secret, as REST returns it`, async (t) => {
    const { call, post } = await newOrganization();
    const key = randomUUID();
    const created = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: key });
    const { secret_url, ...webhook } = created.webhook;
    for (let time = 0; time < 2; time++) {
      const replayed = await post("/v1/webhooks", key, WEBHOOK);
      t.is(replayed.status, 201);
      t.is(replayed.headers.get("idempotency-replayed"), "true");
      const { secret, ...shown } = replayed.body;
      t.deepEqual(shown, webhook);
      t.regex(secret, SECRET);
    }
    const again = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: key });
    t.true(again.isReplayed);
    t.deepEqual(again.webhook, created.webhook);
    t.notRegex(again.text, SECRET);
  });
}
