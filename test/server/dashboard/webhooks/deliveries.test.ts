import test from "ava";
import { isMissing, isProblem, type LinkBody } from "../../harness/api.ts";
import { browserOf, createTeam } from "../../harness/dashboard.ts";
import type { Page } from "../../harness/person.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { type DeliveryBody, type DeliveryPage, type NewWebhookBody, until } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(async () => {
  await service.close();
  await receiver.close();
});

/** A webhook with a path of its own at the receiver, its owner at a browser, and its log. */
async function withReceiver(at: string, events = ["link.created"]) {
  const team = await createTeam(service);
  const { api } = team.owner;
  const { person } = await browserOf(service, team.owner);
  const json = { url: receiver.url(at), events };
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${team.base}/webhooks`, { json });
  const path = `${team.base}/webhooks/${webhook.id}`;
  const log = async (query = "") => (await api.get<DeliveryPage>(`${path}/deliveries${query}`)).body;
  return {
    ...team,
    api,
    person,
    webhook,
    path,
    log,
    open: (address = "") => person.open(service.url + path + address),
    createLink: async () =>
      (await api.send<LinkBody>("POST", `${team.base}/links`, { json: { url: "https://example.com/" } }))
        .body,
    /** Looks at the newest delivery until it is as is hoped for. */
    newest: (isHopedFor: (delivery: DeliveryBody) => boolean) =>
      until(async () => (await log()).data.slice(0, 1).find(isHopedFor)),
  };
}

const isSent = ({ status }: DeliveryBody) => status === "succeeded";

test("a link that is made in the dashboard is told to the webhook, and the log shows what was sent", async (t) => {
  const { createLink, webhook, newest, open } = await withReceiver("/told");
  const link = await createLink();
  const [request] = await receiver.waitFor("/told", 1);
  if (!request) return t.fail();
  t.deepEqual(verify(request, webhook.secret).data, link);
  const delivery = await newest(isSent);
  t.is(JSON.stringify(delivery.request), request.text);
  t.like(delivery.attempts, [{ status: 204 }]);

  const page = await open();
  t.regex(entryOf(page)?.querySelector("summary")?.text ?? "", /Delivered\s+link\.created.*204/s);
  const [body = ""] = /\{.*\}/s.exec(entryOf(page)?.querySelector("pre")?.text ?? "") ?? [];
  t.deepEqual(JSON.parse(body), delivery.request);
  t.false(page.text.includes("Look again"));
});

test("a test event is sent to this webhook alone, from its page", async (t) => {
  const { api, base, person, open, webhook, newest } = await withReceiver("/tested");
  const json = { url: receiver.url("/untested"), events: ["webhook.test"] };
  await api.send("POST", `${base}/webhooks`, { json });
  const empty = await open();
  t.regex(empty.text, /Nothing was sent yet/);
  const sent = await person.press(empty, "Send test event");
  t.regex(sent.text, /A test event is on its way/);
  const [request] = await receiver.waitFor("/tested", 1);
  if (!request) return t.fail();
  t.deepEqual(verify(request, webhook.secret).data, { webhook_id: webhook.id });
  await newest(isSent);
  t.deepEqual(receiver.received("/untested"), []);
});

test("what a receiver refused shows every attempt, and is sent again under the same id", async (t) => {
  const { api, path, person, open, newest } = await withReceiver("/refused");
  receiver.answer("/refused", (answer) => answer.writeHead(503).end("a word of the receiver"));
  await api.send("POST", `${path}/test`);
  const failed = await newest(({ attempts }) => attempts.length > 0);
  t.is(failed.status, "pending");
  const page = await open();
  t.regex(entryOf(page)?.text ?? "", /Failed.*503\s+Retrying at/s);
  t.true(page.text.includes("Look again"));
  t.false(page.text.includes("a word of the receiver"));

  receiver.answer("/refused", (answer) => answer.writeHead(204).end());
  const again = await person.submit(page, {}, entryOf(page)?.querySelector("form"));
  t.regex(again.text, /It is on its way again/);
  const delivered = await newest(isSent);
  t.is(delivered.id, failed.id);
  t.true(delivered.attempts.length > failed.attempts.length);
  t.is(entryOf(await open())?.querySelectorAll("tbody tr").length, delivered.attempts.length);
});

test("a webhook that the service disabled says why, and is enabled again", async (t) => {
  const { api, base, path, person, open, newest } = await withReceiver("/gone");
  receiver.answer("/gone", (answer) => answer.writeHead(410).end());
  await api.send("POST", `${path}/test`);
  const { id } = await newest(({ status }) => status === "failed");
  const shown = await api.get<{ enabled: boolean; disabled_reason: string }>(path);
  t.like(shown.body, { enabled: false, disabled_reason: "The receiver answered 410 Gone." });
  t.regex(
    (await person.open(`${service.url}${base}/webhooks`)).text,
    /Disabled<.*The receiver answered 410 Gone/s,
  );
  const page = await open();
  t.regex(page.html.querySelector(".alert")?.text ?? "", /The service disabled this webhook.*410 Gone/);
  t.false(/Send test event|Send again/.test(page.text));
  for (const address of ["test", `deliveries/${id}/resend`]) {
    const refusal = await api.send("POST", `${path}/${address}`);
    isProblem(t, refusal, { status: 409, code: "webhook_disabled" });
  }
  const enabled = await person.press(page, "Enable");
  t.false(enabled.text.includes("410 Gone. Enable it"));
  t.like((await api.get(path)).body, { enabled: true, disabled_reason: null });
});

test("a form of before it was disabled sends nothing, and says why", async (t) => {
  const { api, path, person, open } = await withReceiver("/late");
  const page = await open();
  await api.send("PATCH", path, { json: { enabled: false } });
  const refused = await person.press(page, "Send test event");
  t.is(refused.status, 409);
  t.regex(refused.html.querySelector("[role=alert]")?.text ?? "", /disabled: enable it first/);
  t.deepEqual(receiver.received("/late"), []);
});

test("many deliveries are shown page by page", async (t) => {
  const { createLink, log, person, open } = await withReceiver("/many");
  for (let count = 0; count < 27; count++) await createLink();
  await until(async () => (await log("?limit=100")).data.every(isSent) || undefined);
  const first = await open();
  t.is(first.html.querySelectorAll(".deliveries > li").length, 25);
  const next = first.html.querySelectorAll("a").find(({ text }) => text === "Next page");
  const second = await person.open(new URL(next?.attributes.href ?? "", first.url).href);
  t.is(second.html.querySelectorAll(".deliveries > li").length, 2);
  const { data, next_cursor } = await log("?limit=20");
  t.is(data.length, 20);
  t.is((await log(`?limit=20&cursor=${next_cursor}`)).data.length, 7);
});

const WRONG_QUERIES: [query: string, code: string, field: string][] = [
  ["limit=0", "invalid_limit", "limit"],
  ["limit=many", "invalid_limit", "limit"],
  ["cursor=made-up", "invalid_cursor", "cursor"],
  ["status=failed", "unknown_field", "status"],
];

test("deliveries that are asked for wrongly are refused, with what is wrong", async (t) => {
  const { api, path, open } = await withReceiver("/wrong");
  for (const [query, code, field] of WRONG_QUERIES) {
    const reply = await api.send("GET", `${path}/deliveries?${query}`);
    isProblem(t, reply, { status: 422, code, fields: [field] });
  }
  const page = await open("?cursor=made-up");
  t.is(page.status, 422);
  t.truthy(page.html.querySelector("[role=alert]"));
});

test("sec 91: a delivery of another webhook, or of none, is not sent again", async (t) => {
  const [one, two] = [await withReceiver("/first"), await withReceiver("/second")];
  await one.createLink();
  const { id } = await one.newest(isSent);
  for (const path of [two.path, one.path.replace(one.webhook.id, two.webhook.id)]) {
    isMissing(t, await two.api.send("POST", `${path}/deliveries/${id}/resend`));
  }
  isMissing(t, await one.api.send("POST", `${one.path}/deliveries/evt_nothing/resend`));
  t.is(receiver.received("/first").length, 1);
  t.deepEqual(receiver.received("/second"), []);
});

const entryOf = ({ html }: Page) => html.querySelector(".deliveries > li");
