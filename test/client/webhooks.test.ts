import test from "ava";
import { Webhook } from "standardwebhooks";
import { createClient, verifyWebhook, WebhookVerificationError } from "../../client/src/index.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { apiAt } from "../harness/clients/api.ts";
import { startReceiver } from "../harness/receiver.ts";
import { startTestService } from "../harness/service.ts";
import { createWebhook } from "../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const organization = await service.createOrganization();
const linkgate = createClient({ baseUrl: service.url, ...organization });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

test("a delivery is verified, during a rotation with either secret, and is typed by its event", async (t) => {
  const api = apiAt(service.url, await service.token(organization));
  const webhook = await createWebhook(api, receiver.url("/rotated"));
  const rotated = await linkgate.rotateWebhookSecret({ id: webhook.id });
  const link = await linkgate.createLink({ url: "https://example.com/" });
  const [delivery] = await receiver.waitFor("/rotated", 1);
  if (!delivery) throw new Error("nothing was received");
  for (const secret of [webhook.secret, rotated.secret]) {
    const event = await verifyWebhook(delivery.text, delivery.headers, secret);
    if (event.type !== "link.created") throw new Error(`received ${event.type}`);
    t.is(event.data.id, link.id);
  }
});

const SECRET = newWebhookSecret();
const BODY = JSON.stringify({ type: "webhook.test", timestamp: "2026-11-26T10:00:00.000Z", data: {} });

/** Returns the headers of a request that is signed with secrets. */
function sign(secrets = [SECRET], at = new Date(), body = BODY): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign("evt_1", at, body));
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signatures.join(" "),
  };
}

const MINUTE_MS = 60_000;
const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE_MS);
const other = newWebhookSecret();

const ACCEPTED: Record<string, Parameters<typeof verifyWebhook>> = {
  "a body of bytes": [Buffer.from(BODY), sign(), SECRET],
  "headers of the Fetch API": [BODY, new Headers(sign()), SECRET],
  "several signatures": [BODY, sign([other, SECRET]), SECRET],
  "several secrets, of which one signed": [BODY, sign(), [other, SECRET]],
  "a signature of another version beside it": [
    BODY,
    { ...sign(), "webhook-signature": `v1a,${"A".repeat(43)}= ${sign()["webhook-signature"]}` },
    SECRET,
  ],
  "a request that is four minutes old": [BODY, sign([SECRET], ago(4)), SECRET],
  "a request of a clock that is four minutes fast": [BODY, sign([SECRET], ago(-4)), SECRET],
};

for (const [what, args] of Object.entries(ACCEPTED)) {
  test(`${what} is accepted`, async (t) => {
    t.deepEqual(await verifyWebhook(...args), JSON.parse(BODY));
  });
}

function without(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(sign()).filter(([key]) => key !== name));
}

const signature = sign()["webhook-signature"] ?? "";

const REFUSED: Record<string, Parameters<typeof verifyWebhook>> = {
  "a body that was changed": [BODY.replace("test", "text"), sign(), SECRET],
  "a body with a byte order mark": [`\ufeff${BODY}`, sign(), SECRET],
  "another ID": [BODY, { ...sign(), "webhook-id": "evt_2" }, SECRET],
  "another timestamp": [
    BODY,
    { ...sign(), "webhook-timestamp": String(Math.floor(Date.now() / 1000) - 1) },
    SECRET,
  ],
  "another secret": [BODY, sign(), other],
  "no secret": [BODY, sign(), []],
  "a request that is six minutes old": [BODY, sign([SECRET], ago(6)), SECRET],
  "a request of a clock that is six minutes fast": [BODY, sign([SECRET], ago(-6)), SECRET],
  "a timestamp that is no number": [BODY, { ...sign(), "webhook-timestamp": "now" }, SECRET],
  "no ID": [BODY, without("webhook-id"), SECRET],
  "no timestamp": [BODY, without("webhook-timestamp"), SECRET],
  "no signature": [BODY, without("webhook-signature"), SECRET],
  "an empty signature": [BODY, { ...sign(), "webhook-signature": "" }, SECRET],
  "a signature that is cut off": [BODY, { ...sign(), "webhook-signature": signature.slice(0, 20) }, SECRET],
  "a signature without a version": [BODY, { ...sign(), "webhook-signature": signature.slice(3) }, SECRET],
  "a signature that is no base64": [
    BODY,
    { ...sign(), "webhook-signature": `v1,${"~".repeat(43)}=` },
    SECRET,
  ],
};

for (const [what, args] of Object.entries(REFUSED)) {
  test(`${what} is refused`, async (t) => {
    await t.throwsAsync(verifyWebhook(...args), { instanceOf: WebhookVerificationError });
  });
}

test("a secret that is none is the application's mistake", async (t) => {
  await t.throwsAsync(verifyWebhook(BODY, sign(), "the secret"), { instanceOf: TypeError });
});
