import test from "ava";
import { fingerprintOf } from "../../../resources/idempotency/run-once.ts";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
test.after.always(() => service.close());

const url = "https://example.com/";
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Sends a POST with a new token, because the clock moves by days. */
async function post<Body = LinkBody>(key: string, json: unknown, path = "/v1/links") {
  const api = apiAt(service.url, await service.token(app));
  return api.send<Body>("POST", path, { json, headers: { "idempotency-key": key } });
}
async function linksTagged(tag: string) {
  const api = apiAt(service.url, await service.token(app));
  return (await api.get<PageBody>(`/v1/links?limit=100&tag=${tag}`)).body.data;
}

/** Begins an attempt, as a server does before it crashes. */
async function crashedAttempt(operation: string, key: string, json: unknown) {
  const principal = { organizationId: app.id, clientId: app.clientId };
  const begun = await service.storage.idempotency.begin(principal, key, fingerprintOf(operation, json));
  if (!("attempt" in begun)) throw new Error("the key is in use");
  return begun.attempt;
}
const make = (slug: string, tags: string[], id: string) =>
  service.storage.links.create(app.id, { id: app.clientId }, linkFields({ slug, tags }), id);

test.serial("a request that is no longer valid is still replayed", async (t) => {
  const json = { url, expires_at: new Date(Date.now() + MINUTE_MS).toISOString() };
  const first = await post("expires", json);
  advanceClock(2 * MINUTE_MS);
  const again = await post("expires", json);
  t.deepEqual([again.status, again.text], [201, first.text]);
});

test.serial("a key can be reused after 24 hours", async (t) => {
  const first = await post("day", { url });
  advanceClock(DAY_MS - MINUTE_MS);
  t.is((await post("day", { url })).text, first.text);
  advanceClock(MINUTE_MS);
  const later = await post("day", { url });
  t.is(later.status, 201);
  t.false(later.headers.has("idempotency-replayed"));
  t.not(later.body.id, first.body.id);
});

for (const [name, slug] of [
  ["a chosen slug", "crashed"],
  ["a random slug", undefined],
] as const) {
  test.serial(`after a crash that created a link with ${name}, a retry returns that link`, async (t) => {
    const tags = [slug ?? "random"];
    const json = { url, tags, ...(slug && { slug }) };
    const { linkId } = await crashedAttempt("createLink", `crashed-${tags}`, json);
    await make(slug ?? "chance", tags, linkId(0));
    isProblem(t, await post(`crashed-${tags}`, json), { status: 409, code: "idempotency_key_in_use" });
    advanceClock(MINUTE_MS);
    const reply = await post(`crashed-${tags}`, json);
    t.is(reply.status, 201);
    t.is(reply.body.id, linkId(0));
    t.is(reply.headers.get("etag"), '"1"');
    t.false(reply.headers.has("idempotency-replayed"));
    t.is((await linksTagged(tags[0] as string)).length, 1);
    t.is((await post(`crashed-${tags}`, json)).headers.get("idempotency-replayed"), "true");
  });
}

test.serial("after a server error, an immediate retry returns the link that was created", async (t) => {
  const json = { url, tags: ["failed"] };
  const { linkId, release } = await crashedAttempt("createLink", "failed", json);
  await make("failed", ["failed"], linkId(0));
  await release();
  isProblem(t, await post("failed", { url }), { status: 422, code: "idempotency_key_reused" });
  t.is((await post("failed", json)).body.id, linkId(0));
  t.is((await linksTagged("failed")).length, 1);
});

test.serial("after a crash that created nothing, a retry creates the link", async (t) => {
  const json = { url, tags: ["not-created"] };
  await crashedAttempt("createLink", "not-created", json);
  advanceClock(MINUTE_MS);
  t.is((await post("not-created", json)).status, 201);
  t.is((await linksTagged("not-created")).length, 1);
});

test.serial("after a crash during a bulk request, a retry creates the missing links", async (t) => {
  const json = { links: Array.from({ length: 10 }, (_, n) => ({ url, tags: ["many"], slug: `many-${n}` })) };
  const { linkId } = await crashedAttempt("createLinks", "many", json);
  for (const n of [0, 3, 4, 9]) await make(`many-${n}`, ["many"], linkId(n));
  advanceClock(MINUTE_MS);
  const { body } = await post<{ results: { status: number; link: LinkBody }[] }>(
    "many",
    json,
    "/v1/links/bulk",
  );
  t.deepEqual(
    body.results.map(({ status, link }) => [status, link.slug, link.id]),
    json.links.map(({ slug }, n) => [201, slug, linkId(n)]),
  );
  t.is((await linksTagged("many")).length, 10);
});
