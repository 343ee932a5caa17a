import { randomUUID } from "node:crypto";
import test from "ava";
import { apiAt, isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { connectMcp } from "../../../harness/clients/mcp.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startReceiver, verify } from "../../../harness/receiver.ts";
import { bearer, startTestService } from "../../../harness/service.ts";
import {
  type NewWebhookBody,
  redacted,
  type WebhookBody,
  waitUntilVerified,
} from "../../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const SECRET = /whsec_[A-Za-z0-9+/]{43}=/;
const textOf = ({ html }: Page) => html.querySelector("main")?.text ?? "";
type Rotated = { client_id: string; client_secret: string };
type Audit = { data: { actor: { id: string }; subject: string; data: object }[] };

/** Creates a team with a webhook that its client created over REST. */
async function withWebhook(url = "https://hooks.example.com/in") {
  const team = await createTeam(service);
  const rotation = await team.owner.api.send<Rotated>("POST", `${team.base}/client/rotate`, { json: {} });
  const { client_id: clientId, client_secret: clientSecret } = rotation.body;
  const token = await service.token({ clientId, clientSecret });
  const json = { url, events: ["link.created"] };
  const { body } = await apiAt(service.url, token).send<NewWebhookBody>("POST", "/v1/webhooks", { json });
  const { secret, ...webhook } = body;
  const path = `${team.base}/webhooks/${webhook.id}`;
  const views = async () =>
    (await team.owner.api.get<Audit>(`${team.base}/audit?type=webhook.secret_viewed`)).body.data;
  return { ...team, token, webhook, secret, path, views };
}

test.serial("owners and admins view the secret of a webhook that another client created", async (t) => {
  const { owner, admin, webhook, secret, path, views } = await withWebhook();
  for (const { api } of [owner, admin]) {
    const reply = await api.send<NewWebhookBody>("POST", `${path}/secret`);
    t.is(reply.status, 200);
    t.like(reply.body, { id: webhook.id, url: webhook.url, secret });
    t.is(reply.headers.get("cache-control"), "no-store");
  }
  const recorded = await views();
  t.is(recorded.length, 2);
  for (const entry of recorded) {
    t.like(entry, { subject: webhook.id, data: { url: redacted(webhook.url) } });
    t.false(JSON.stringify(entry).includes(secret));
  }
});

test.serial("after a rotation, the new secret is shown", async (t) => {
  const { owner, secret, path } = await withWebhook();
  const rotated = await owner.api.send<NewWebhookBody>("POST", `${path}/rotate-secret`);
  const shown = await owner.api.send<NewWebhookBody>("POST", `${path}/secret`);
  t.is(shown.body.secret, rotated.body.secret);
  t.not(shown.body.secret, secret);
});

test.serial("the secret of a webhook that an agent created verifies its requests", async (t) => {
  const { owner, base, token } = await withWebhook();
  const agent = await connectMcp(`${service.url}/mcp`, token);
  const path = `/${randomUUID()}`;
  const args = { url: receiver.url(path), events: ["link.created"] };
  const result = await agent.callTool({ name: "create_webhook", arguments: args });
  const { id } = result.structuredContent as WebhookBody;
  await waitUntilVerified(apiAt(service.url, token), `/v1/webhooks/${id}`);
  await agent.callTool({ name: "test_webhook", arguments: { id } });
  const [request] = await receiver.waitFor(path, 1);
  const { body } = await owner.api.send<NewWebhookBody>("POST", `${base}/webhooks/${id}/secret`);
  t.truthy(request && verify(request, body.secret));
  await agent.close();
});

test.serial("the page hides the secret until its button is pressed", async (t) => {
  const { owner, webhook, secret, path } = await withWebhook();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  t.notRegex(page.text, SECRET);
  const shown = await browser.press(page, "Show secret");
  t.is(shown.status, 200);
  t.true(textOf(shown).includes(secret));
  t.true(textOf(shown).includes(webhook.url));
});

test.serial("on the Free plan, the secret can still be viewed", async (t) => {
  const { owner, base, secret, path } = await withWebhook();
  t.is((await owner.api.send("PUT", `${base}/plan`, { json: { plan: "free" } })).status, 200);
  t.is((await owner.api.send<NewWebhookBody>("POST", `${path}/secret`)).body.secret, secret);
});

test.serial(
  "a member, a stranger and a token of the API can't view a secret, and nothing is recorded",
  async (t) => {
    const { member, stranger, other, token, webhook, path, views } = await withWebhook();
    isProblem(t, await member.api.send("POST", `${path}/secret`), { status: 403, code: "role_required" });
    isMissing(t, await stranger.api.send("POST", `${path}/secret`));
    const theirs = `/dashboard/organizations/${other.id}/webhooks/${webhook.id}/secret`;
    isMissing(t, await stranger.api.send("POST", theirs));
    t.is(
      (await fetch(`${service.url}${path}/secret`, { method: "POST", headers: bearer(token) })).status,
      401,
    );
    t.is((await fetch(`${service.url}${path}/secret`, { method: "POST" })).status, 401);
    t.deepEqual(await views(), []);
  },
);

test.serial("a secret is not shown in response to a GET, or to a form without a CSRF token", async (t) => {
  const { owner, path, views } = await withWebhook();
  t.notRegex((await owner.api.send("GET", `${path}/secret`)).text, SECRET);
  const { browser } = await browserOf(service, owner);
  await browser.open(service.url + path);
  const cookie = await browser.jar.getCookieString(service.url + path);
  const response = await fetch(`${service.url}${path}/secret`, {
    method: "POST",
    headers: { cookie, origin: service.url, "content-type": "application/x-www-form-urlencoded" },
    redirect: "manual",
  });
  t.is(response.status, 403);
  t.notRegex(await response.text(), SECRET);
  t.deepEqual(await views(), []);
});

test.serial(
  "ten minutes after the sign-in, the user signs in again and returns to the webhook",
  async (t) => {
    const { owner, secret, path, views } = await withWebhook();
    const { browser } = await browserOf(service, owner);
    const page = await browser.open(service.url + path);
    advanceClock(11 * 60_000);
    const asked = await browser.press(page, "Show secret");
    t.truthy(asked.html.querySelector("#password"), asked.text);
    const back = await browser.signIn(asked, owner);
    t.is(back.url, service.url + path);
    const shown = await browser.press(back, "Show secret");
    t.true(textOf(shown).includes(secret));
    isProblem(t, await owner.api.send("POST", `${path}/secret`), {
      status: 403,
      code: "reauthentication_required",
    });
    t.is((await views()).length, 1);
  },
);

test.serial("ten minutes after the sign-in, a rotation requires another one too", async (t) => {
  const { owner, secret, path } = await withWebhook();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${path}/rotate-secret`);
  advanceClock(11 * 60_000);
  isProblem(t, await owner.api.send("POST", `${path}/rotate-secret`), {
    status: 403,
    code: "reauthentication_required",
  });
  const asked = await browser.press(page, "Rotate secret");
  t.truthy(asked.html.querySelector("#password"), asked.text);
  const back = await browser.signIn(asked, owner);
  t.is(back.url, `${service.url}${path}/rotate-secret`);
  const shown = textOf(await browser.press(back, "Rotate secret"));
  t.regex(shown, SECRET);
  t.false(shown.includes(secret));
});
