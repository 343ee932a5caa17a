import assert from "node:assert/strict";
import fc from "fast-check";
import { type Api, apiAt, type LinkBody, type PageBody, type Reply } from "./api.ts";
import {
  type Expected,
  type Filter,
  type Input,
  LinkModel,
  type Match,
  type ModelLink,
  matchHeader,
  tagOf,
} from "./link-model.ts";

/** The service, as one organization and whoever follows its links see it. */
export type World = { api: Api; visitor: Api; shortUrl: string; prefix: string };
/** What should be there: links, and the answers that belong to keys. */
export type Model = { links: LinkModel; keys: Map<string, { request: string; reply: Reply<unknown> }> };
type Command = fc.AsyncCommand<Model, World>;
type Draft = { input: Input; fault: string | undefined };
type Results = { results: { status: number; link?: LinkBody; error?: { code: string } }[] };

let count = 0;

/** A world of an organization's own: its slugs are nobody else's. */
export function newWorld(url: string, token: string): World {
  return { api: apiAt(url, token), visitor: apiAt(url), shortUrl: url, prefix: `m${++count}` };
}

/** An organization without links. */
export function newModel(): Model {
  return { links: new LinkModel(), keys: new Map() };
}

const sometimes = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
// Few of each, so that they meet.
const place = fc.nat(5);
const slug = fc.constantFrom("a", "b", "c", "A");
const externalId = fc.constantFrom("x", "y/z", "ä %");
const tag = fc.constantFrom("red", "Red", "re", "blue green");
const title = fc.constantFrom("Spring", "100% off_", "Été");
const url = fc.constantFrom(
  "https://example.com/",
  "https://example.org/Spring?a=1",
  "http://a.example/%C3%A4#b",
);
const key = sometimes(fc.constantFrom("k1", "k2", "k3"));
const match = fc.constantFrom<Match>("none", "none", "none", "current", "stale", "weak", "listed", "any");

const optional = {
  slug,
  title: fc.option(title),
  tags: fc.array(tag, { maxLength: 3 }),
  external_id: fc.option(externalId),
  metadata: fc.dictionary(fc.constantFrom("k", "ö"), fc.constantFrom("v", 1.5, true, null), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
  expires_at: fc.constantFrom(null, "2099-01-31T12:00:00+02:00"),
  max_clicks: fc.constantFrom(null, 1, 2),
  redirect_type: fc.constantFrom(301, 302, 307, 308),
};
const FAULTS: [wrong: Input, code: string][] = [
  [{ url: "ftp://example.com/" }, "invalid_url"],
  [{ slug: "v1" }, "invalid_slug"],
  [{ max_clicks: 0 }, "invalid_max_clicks"],
  [{ tags: [""] }, "invalid_tags"],
  [{ expires_at: "2001-01-01T00:00:00Z" }, "invalid_expires_at"],
  [{ clicks: 5 }, "unknown_field"],
];

/** Input that is right, or wrong in one way. */
function drafts(fields: fc.Arbitrary<Input>): fc.Arbitrary<Draft> {
  const fault = fc.oneof(
    { weight: 9, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(...FAULTS) },
  );
  return fc.tuple(fields, fault).map(([input, wrong]) => ({
    input: { ...input, ...wrong?.[0] },
    fault: wrong?.[1],
  }));
}
const newLink = drafts(fc.record({ url, ...optional }, { requiredKeys: ["url"] }));
// One field or none as often as many: what a link has already is no change.
const changes = drafts(
  fc.oneof(
    fc.record({ url, archived: fc.boolean(), ...optional }, { requiredKeys: [] }),
    fc.constantFrom({}, { archived: true }, { archived: false }, { title: "Spring" }, { max_clicks: 1 }),
  ),
);
const { external_id, ...others } = optional;
const wholeLink = drafts(
  fc.oneof(fc.record({ url, ...others }, { requiredKeys: ["url"] }), fc.record({ url })),
);

/** Slugs are those of one world. */
function placed({ input, fault }: Draft, { prefix }: World): Input {
  return input.slug === undefined || fault === "invalid_slug"
    ? input
    : { ...input, slug: `${prefix}-${input.slug}` };
}

function command<T>(
  name: string,
  input: fc.Arbitrary<T>,
  run: (model: Model, world: World, input: T) => Promise<void>,
) {
  return input.map(
    (value): Command => ({
      check: () => true,
      run: (model, world) => run(model, world, value),
      toString: () => `${name}(${fc.stringify(value)})`,
    }),
  );
}

function isAs({ status, body, text }: Reply<unknown>, expected: Expected): boolean {
  assert.equal(status, expected.status, text);
  if (!expected.codes) return true;
  const { code } = body as { code: string };
  assert.ok(expected.codes.includes(code), `${code} is none of ${expected.codes}`);
  return false;
}

function shows(reply: Reply<LinkBody>, link: ModelLink): void {
  const { view } = link;
  // When it was clicked is for the service to know, and whether it was, for the model.
  assert.equal(reply.body.last_clicked_at === null, view.clicks === 0);
  assert.deepEqual(reply.body, { ...view, last_clicked_at: reply.body.last_clicked_at });
  assert.equal(reply.headers.get("etag"), tagOf(link));
}

/** Sends a POST; one whose key is known already has to be answered as before, and resolves to nothing. */
async function post<Body>(
  { keys }: Model,
  { api }: World,
  path: string,
  json: Input,
  key: string | undefined,
) {
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const reply = await api.send<Body>("POST", path, { json, headers });
  if (key === undefined) return reply;
  const request = JSON.stringify([path, json]);
  const known = keys.get(key);
  assert.equal(reply.headers.get("idempotency-replayed"), known?.request === request ? "true" : null);
  if (!known) {
    if (reply.status !== 422) keys.set(key, { request, reply });
    return reply;
  }
  if (known.request !== request) isAs(reply, { status: 422, codes: ["idempotency_key_reused"] });
  else assert.deepEqual(essence(reply), essence(known.reply));
  return undefined;
}

function essence({ status, headers, body }: Reply<unknown>) {
  const { request_id, ...rest } = body as Input;
  return { status, rest, etag: headers.get("etag"), location: headers.get("location") };
}

const create = command("create", fc.record({ draft: newLink, key }), async (model, world, { draft, key }) => {
  const input = placed(draft, world);
  const expected = model.links.expectCreate(input, draft.fault);
  const reply = await post<LinkBody>(model, world, "/v1/links", input, key);
  if (!reply || !isAs(reply, expected)) return;
  shows(reply, model.links.made(input, reply.body, world.shortUrl));
  assert.equal(reply.headers.get("location"), `/v1/links/${reply.body.id}`);
});

const bulkInput = fc.record({ drafts: fc.array(newLink, { minLength: 1, maxLength: 4 }), key });
const bulk = command("bulk", bulkInput, async (model, world, { drafts, key }) => {
  const inputs = drafts.map((draft) => placed(draft, world));
  const reply = await post<Results>(model, world, "/v1/links/bulk", { links: inputs }, key);
  if (!reply) return;
  assert.equal(reply.status, 200);
  assert.equal(reply.body.results.length, inputs.length);
  for (const [index, { status, link, error }] of reply.body.results.entries()) {
    const input = inputs[index] as Input;
    const expected = model.links.expectCreate(input, drafts[index]?.fault);
    assert.equal(status, expected.status);
    if (expected.codes) assert.ok(expected.codes.includes(error?.code ?? ""), error?.code);
    else assert.deepEqual(link, model.links.made(input, link as LinkBody, world.shortUrl).view);
  }
});

const upsertInput = fc.record({ externalId, draft: wholeLink, match });
const upsert = command("upsert", upsertInput, async (model, world, { externalId, draft, match }) => {
  const input = placed(draft, world);
  const link = model.links.byExternalId(externalId);
  const expected = model.links.expectUpsert(externalId, input, match, draft.fault);
  const path = `/v1/links/by-external-id/${encodeURIComponent(externalId)}`;
  const headers = matchHeader(match, link);
  const reply = await world.api.send<LinkBody>("PUT", path, { json: input, headers });
  if (!isAs(reply, expected)) return;
  if (link) model.links.replaced(link, input, reply.body, world.shortUrl);
  const whole = { ...input, external_id: externalId };
  shows(reply, link ?? model.links.made(whole, reply.body, world.shortUrl));
});

const get = command(
  "get",
  fc.record({ place, isKnown: fc.boolean() }),
  async ({ links }, { api }, { place, isKnown }) => {
    const link = links.at(place);
    const headers: Record<string, string> = isKnown && link ? { "if-none-match": tagOf(link) } : {};
    const reply = await api.get(`/v1/links/${link?.view.id ?? "lnk_unknown"}`, headers);
    if (!link || link.isDeleted) isAs(reply, { status: 404, codes: ["not_found"] });
    else if (isKnown) assert.equal(reply.status, 304);
    else shows(reply, link);
  },
);

const patch = command(
  "patch",
  fc.record({ place, draft: changes, match }),
  async ({ links }, world, { place, draft, match }) => {
    const input = placed(draft, world);
    const link = links.at(place);
    const expected = links.expectChange(link, input, match, draft.fault);
    const path = `/v1/links/${link?.view.id ?? "lnk_unknown"}`;
    const headers = matchHeader(match, link);
    const reply = await world.api.send<LinkBody>("PATCH", path, { json: input, headers });
    if (!isAs(reply, expected) || !link) return;
    links.changed(link, input, reply.body, world.shortUrl);
    shows(reply, link);
  },
);

const remove = command(
  "delete",
  fc.record({ place, match }),
  async ({ links }, { api }, { place, match }) => {
    const link = links.at(place);
    const expected = links.expectChange(link, {}, match);
    const path = `/v1/links/${link?.view.id ?? "lnk_unknown"}`;
    const reply = await api.send("DELETE", path, { headers: matchHeader(match, link) });
    if (expected.codes) return void isAs(reply, expected);
    assert.equal(reply.status, 204);
    if (!link) return;
    link.isDeleted = true;
  },
);

const follow = command(
  "follow",
  fc.record({ place, isLook: fc.boolean() }),
  async ({ links }, { visitor, prefix }, { place, isLook }) => {
    const link = links.at(place);
    const { status } = links.expectFollow(link);
    const reply = await visitor.send(isLook ? "HEAD" : "GET", `/${link?.view.slug ?? `${prefix}-nowhere`}`);
    assert.equal(reply.status, status);
    if (status >= 400 || !link) return;
    assert.equal(reply.headers.get("location"), link.view.url);
    if (!isLook) links.followed(link);
  },
);

const filter: fc.Arbitrary<Filter> = fc.record(
  { search: fc.constantFrom("spring", "100%", "_", "EXAMPLE.ORG", "-A"), tag, archived: fc.boolean() },
  { requiredKeys: [] },
);
const list = command(
  "list",
  fc.record({ filter, limit: fc.integer({ min: 1, max: 3 }) }),
  async ({ links }, { api }, { filter, limit }) => {
    const expected = links.list(filter);
    const seen: LinkBody[] = [];
    let cursor: string | null = null;
    do {
      const query = new URLSearchParams({ limit: String(limit) });
      for (const [name, value] of Object.entries(filter)) query.set(name, String(value));
      if (cursor) query.set("cursor", cursor);
      const { status, body, text } = await api.get<PageBody>(`/v1/links?${query}`);
      assert.equal(status, 200, text);
      assert.ok(body.data.length === limit || body.next_cursor === null, "only the last page is short");
      seen.push(...body.data);
      cursor = body.next_cursor;
    } while (cursor);
    const isClicked = ({ last_clicked_at, ...view }: LinkBody) => ({
      ...view,
      isClicked: last_clicked_at !== null,
    });
    assert.deepEqual(
      seen.map(isClicked),
      expected.map((view) => ({ ...isClicked(view), isClicked: view.clicks > 0 })),
    );
  },
);

/** Any call that a client may send, with any input. */
export const linkCommands = [create, create, bulk, upsert, get, patch, remove, follow, follow, list];
