import test from "ava";
import { Webhook } from "standardwebhooks";
import { createClient, verifyWebhook, WebhookVerificationError } from "../../../client/src/index.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";

const { service, receiver, subscribe } = await startWebhookService();

test("a delivery is verified, during a rotation with either secret, and is typed by its event", async (t) => {
  const { organization, webhook, path } = await subscribe();
  const linkgate = createClient({ baseUrl: service.url, ...organization });
  const rotated = await linkgate.rotateWebhookSecret({ id: webhook.id });
  const link = await linkgate.createLink({ url: "https://example.com/" });
  const [delivery] = await receiver.waitFor(path, 1);
  if (!delivery) throw new Error("nothing was received");
  for (const secret of [webhook.secret, rotated.secret]) {
    const event = await verifyWebhook(delivery.text, delivery.headers, secret);
    if (event.type !== "link.created") throw new Error(`received ${event.type}`);
    t.is(event.data.id, link.id);
  }
});

const SECRET = newWebhookSecret();
const NOW = new Date();
const BODY = JSON.stringify({ type: "webhook.test", timestamp: "2026-11-26T10:00:00.000Z", data: {} });

function sign(secrets = [SECRET], at = NOW, body = BODY): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign("evt_1", at, body));
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signatures.join(" "),
  };
}

const MINUTE_MS = 60_000;
const ago = (minutes: number) => new Date(NOW.getTime() - minutes * MINUTE_MS);
const other = newWebhookSecret();

type Arguments = Parameters<typeof verifyWebhook>;
const signature = sign()["webhook-signature"] ?? "";
const withHeader = (name: string, value: string): Arguments => [BODY, { ...sign(), [name]: value }, SECRET];
const signedAs = (value: string) => withHeader("webhook-signature", value);

const ACCEPTED: Record<string, Arguments> = {
  "a body of bytes": [Buffer.from(BODY), sign(), SECRET],
  "headers of the Fetch API": [BODY, new Headers(sign()), SECRET],
  "several signatures": [BODY, sign([other, SECRET]), SECRET],
  "several secrets, of which one signed": [BODY, sign(), [other, SECRET]],
  "a signature of another version beside it": signedAs(`v1a,${"A".repeat(43)}= ${signature}`),
  "a request that is four minutes old": [BODY, sign([SECRET], ago(4)), SECRET],
  "a request of a clock that is four minutes fast": [BODY, sign([SECRET], ago(-4)), SECRET],
};

test("a request that was signed with one of the secrets, in the last five minutes, is accepted", async (t) => {
  for (const [what, args] of Object.entries(ACCEPTED))
    t.deepEqual<unknown, unknown>(await verifyWebhook(...args), JSON.parse(BODY), what);
});

function without(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(sign()).filter(([key]) => key !== name));
}

const REFUSED: Record<string, Arguments> = {
  "a body that was changed": [BODY.replace("test", "text"), sign(), SECRET],
  "a body with a byte order mark": [`\ufeff${BODY}`, sign(), SECRET],
  "another ID": withHeader("webhook-id", "evt_2"),
  "another timestamp": withHeader("webhook-timestamp", String(Math.floor(NOW.getTime() / 1000) - 1)),
  "another secret": [BODY, sign(), other],
  "no secret": [BODY, sign(), []],
  "a request that is six minutes old": [BODY, sign([SECRET], ago(6)), SECRET],
  "a request of a clock that is six minutes fast": [BODY, sign([SECRET], ago(-6)), SECRET],
  "a timestamp that is no number": withHeader("webhook-timestamp", "now"),
  "no ID": [BODY, without("webhook-id"), SECRET],
  "no signature": [BODY, without("webhook-signature"), SECRET],
  "a signature that is cut off": signedAs(signature.slice(0, 20)),
  "a signature without a version": signedAs(signature.slice(3)),
  "a signature that is no base64": signedAs(`v1,${"~".repeat(43)}=`),
};

test("a request that was changed, is old or isn't signed is refused", async (t) => {
  for (const [what, args] of Object.entries(REFUSED))
    await t.throwsAsync(verifyWebhook(...args), { instanceOf: WebhookVerificationError }, what);
});

test("a secret that is none is the application's mistake", async (t) => {
  await t.throwsAsync(verifyWebhook(BODY, sign(), "the secret"), { instanceOf: TypeError });
});
