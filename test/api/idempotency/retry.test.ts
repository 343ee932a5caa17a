import test from "ava";
import { fingerprintOf } from "../../../resources/idempotency/run-once.ts";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { advanceClock, MINUTE_MS } from "../../harness/clock.ts";
import { linkFields } from "../../harness/database/storage.ts";

const { service, app } = await shareApi();

const url = "https://example.com/";

/** Sends a POST with a new token, because the clock moves. */
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

for (const [name, slug] of [
  ["a link with a chosen slug", "crashed"],
  ["a link with a random slug", undefined],
  ["nothing", null],
] as const)
  test.serial(`after a crash that created ${name}, a retry returns one link`, async (t) => {
    const tags = [slug ?? `${slug}`];
    const json = { url, tags, ...(slug && { slug }) };
    const { linkId } = await crashedAttempt("createLink", `crashed-${tags}`, json);
    if (slug !== null) await make(slug ?? "chance", tags, linkId(0));
    const held = await post(`crashed-${tags}`, json);
    isProblem(t, held, { status: 409, code: "idempotency_key_in_use" });
    t.is(held.headers.get("retry-after"), "1");
    advanceClock(MINUTE_MS);
    const reply = await post(`crashed-${tags}`, json);
    t.is(reply.status, 201);
    t.is(reply.body.id, linkId(0));
    t.is(reply.headers.get("etag"), '"1"');
    t.false(reply.headers.has("idempotency-replayed"));
    t.is((await linksTagged(tags[0] as string)).length, 1);
    t.is((await post(`crashed-${tags}`, json)).headers.get("idempotency-replayed"), "true");
  });

test.serial("after a crash during a bulk request, a retry creates the missing links", async (t) => {
  const json = { links: Array.from({ length: 10 }, (_, n) => ({ url, tags: ["many"], slug: `many-${n}` })) };
  const { linkId } = await crashedAttempt("createLinks", "many", json);
  for (const n of [0, 3, 4, 9]) await make(`many-${n}`, ["many"], linkId(n));
  advanceClock(MINUTE_MS);
  type Results = { results: { status: number; link: LinkBody }[] };
  const { body } = await post<Results>("many", json, "/v1/links/bulk");
  const results = body.results.map(({ status, link }) => [status, link.slug, link.id]);
  t.deepEqual(
    results,
    json.links.map(({ slug }, n) => [201, slug, linkId(n)]),
  );
  t.is((await linksTagged("many")).length, 10);
});
