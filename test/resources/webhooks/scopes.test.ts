import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type DeliveryBody, type WebhookPage } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const app = await service.createOrganization();
const owner = apiAt(service.url, await service.token(app));
const tokens = new Map<string, string>();
for (const scope of ["webhooks:read", "webhooks:write", "links:read links:write"])
  tokens.set(scope, await service.token(app, { scope }));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

type Route = { method: string; path: string; needs: string; success: number; json?: object };
const routes: Route[] = [
  { method: "GET", path: "", needs: "webhooks:read", success: 200 },
  { method: "HEAD", path: "", needs: "webhooks:read", success: 200 },
  { method: "GET", path: "/{id}", needs: "webhooks:read", success: 200 },
  { method: "GET", path: "/{id}/deliveries", needs: "webhooks:read", success: 200 },
  {
    method: "POST",
    path: "",
    needs: "webhooks:write",
    success: 201,
    json: { url: receiver.url("/created"), events: ["link.created"] },
  },
  { method: "PATCH", path: "/{id}", needs: "webhooks:write", success: 200, json: { enabled: false } },
  { method: "DELETE", path: "/{id}", needs: "webhooks:write", success: 204 },
  { method: "POST", path: "/{id}/rotate-secret", needs: "webhooks:write", success: 200 },
  { method: "POST", path: "/{id}/test", needs: "webhooks:write", success: 202 },
  { method: "POST", path: "/{id}/deliveries/{delivery_id}/resend", needs: "webhooks:write", success: 202 },
];

/** Creates the webhook and the delivery that the routes need, after deleting all others. */
async function setUp() {
  const { body } = await owner.get<WebhookPage>("/v1/webhooks?limit=100");
  for (const { id } of body.data) await owner.send("DELETE", `/v1/webhooks/${id}`);
  const { id } = await createWebhook(owner, receiver.url("/scopes"));
  const { body: delivery } = await owner.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`);
  return { id, delivery };
}

for (const { method, path, needs, success, json } of routes) {
  for (const [scope, token] of tokens) {
    const isAllowed = scope === needs || scope === needs.replace(":read", ":write");
    const name = `${method} /v1/webhooks${path} with ${scope}`;
    test.serial(`${name} is ${isAllowed ? "allowed" : "rejected and changes nothing"}`, async (t) => {
      const { id, delivery } = await setUp();
      const before = await owner.get<WebhookPage>("/v1/webhooks");
      const address = `/v1/webhooks${path}`.replace("{id}", id).replace("{delivery_id}", delivery.id);
      const reply = await apiAt(service.url, token).send(method, address, json && { json });
      if (isAllowed) {
        t.is(reply.status, success, reply.text);
        return;
      }
      t.is(challengeOf(reply)?.error, "insufficient_scope");
      t.is(challengeOf(reply)?.scope, `${scope} ${needs}`);
      if (method !== "HEAD") isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.deepEqual((await owner.get<WebhookPage>("/v1/webhooks")).body, before.body);
    });
  }

  test(`${method} /v1/webhooks${path} without a token is rejected with the required scope`, async (t) => {
    const address = `/v1/webhooks${path}`.replace("{id}", "whk_x").replace("{delivery_id}", "evt_x");
    const reply = await apiAt(service.url).send(method, address, json && { json });
    t.is(reply.status, 401);
    t.is(challengeOf(reply)?.scope, needs);
  });
}
