import assert from "node:assert/strict";
import fc from "fast-check";
import { type Api, apiAt, type LinkBody, type PageBody, type Reply } from "../clients/api.ts";
import type { Expected, Filter, Input, LinkModel, Match, ModelLink } from "./link-model.ts";
import { matchHeader, tagOf } from "./link-model.ts";

export type Target = { api: Api; visitor: Api; shortUrl: string; prefix: string };
type Command = fc.AsyncCommand<LinkModel, Target>;
type Results = { results: { status: number; link?: LinkBody; error?: { code: string } }[] };

let count = 0;

/** Creates the target for one organization, with a slug prefix that no other target has. */
export function createTarget(url: string, token: string): Target {
  return { api: apiAt(url, token), visitor: apiAt(url), shortUrl: url, prefix: `m${++count}` };
}

// A few values of each, so that they collide.
const index = fc.nat(5);
const slug = fc.constantFrom("a", "b", "a/b", "A");
const externalId = fc.constantFrom("x", "y/z", "ä %");
const tag = fc.constantFrom("red", "Red", "re", "blue green");
const title = fc.constantFrom("Spring", "100% off_", "Été");
const url = fc.constantFrom(
  "https://example.com/",
  "https://example.org/Spring?a=1",
  "http://a.example/%C3%A4#b",
);
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
  fallback_url: fc.constantFrom(null, "https://example.com/gone"),
  forward_query: fc.boolean(),
  forward_path: fc.boolean(),
  rules: fc.constantFrom(
    [],
    [{ if: { device: "mobile", after: "2026-01-01T00:00:00.000Z" }, url: "https://example.com/m" }],
  ),
  card: fc.option(
    fc.record(
      {
        title: fc.constantFrom("Spring", "<b>"),
        description: fc.option(fc.constant("Two\nlines")),
        image_url: fc.constantFrom(null, "https://example.com/a.png"),
      },
      { noNullPrototype: true },
    ),
  ),
};
const newLink = fc.record({ url, ...optional }, { requiredKeys: ["url"] });
// One field or none is as likely as many, to send current values often enough.
const changes = fc.oneof(
  fc.record({ url, archived: fc.boolean(), ...optional }, { requiredKeys: [] }),
  fc.constantFrom({}, { archived: true }, { archived: false }, { title: "Spring" }, { max_clicks: 1 }),
);
const { external_id, ...others } = optional;
const wholeLink = fc.oneof(fc.record({ url, ...others }, { requiredKeys: ["url"] }), fc.record({ url }));

function withPrefix(input: Input, { prefix }: Target): Input {
  return input.slug === undefined ? input : { ...input, slug: `${prefix}-${input.slug}` };
}

function command<T>(
  name: string,
  input: fc.Arbitrary<T>,
  run: (model: LinkModel, target: Target, input: T) => Promise<void>,
) {
  return input.map(
    (value): Command => ({
      check: () => true,
      run: (model, target) => run(model, target, value),
      toString: () => `${name}(${fc.stringify(value)})`,
    }),
  );
}

function assertStatus({ status, body, text }: Reply<unknown>, expected: Expected): boolean {
  assert.equal(status, expected.status, text);
  if (!expected.codes) return true;
  const { code } = body as { code: string };
  assert.ok(expected.codes.includes(code), `${code} is not one of ${expected.codes}`);
  return false;
}

function assertShows(reply: Reply<LinkBody>, link: ModelLink): void {
  const { view } = link;
  // The model knows whether the link was clicked, but not when.
  assert.equal(reply.body.last_clicked_at === null, view.clicks === 0);
  assert.deepEqual(reply.body, { ...view, last_clicked_at: reply.body.last_clicked_at });
  assert.equal(reply.headers.get("etag"), tagOf(link));
}

const create = command("create", newLink, async (model, target, draft) => {
  const input = withPrefix(draft, target);
  const expected = model.expectUnlessTaken(201, input);
  const reply = await target.api.send<LinkBody>("POST", "/v1/links", { json: input });
  if (!assertStatus(reply, expected)) return;
  assertShows(reply, model.create(input, reply.body, target.shortUrl));
  assert.equal(reply.headers.get("location"), `/v1/links/${reply.body.id}`);
});

const bulkInput = fc.array(newLink, { minLength: 1, maxLength: 4 });
const bulk = command("bulk", bulkInput, async (model, target, drafts) => {
  const inputs = drafts.map((draft) => withPrefix(draft, target));
  const reply = await target.api.send<Results>("POST", "/v1/links/bulk", { json: { links: inputs } });
  assert.equal(reply.status, 200);
  assert.equal(reply.body.results.length, inputs.length);
  for (const [position, { status, link, error }] of reply.body.results.entries()) {
    const input = inputs[position] as Input;
    const expected = model.expectUnlessTaken(201, input);
    assert.equal(status, expected.status);
    if (expected.codes) assert.ok(expected.codes.includes(error?.code ?? ""), error?.code);
    else assert.deepEqual(link, model.create(input, link as LinkBody, target.shortUrl).view);
  }
});

const upsertInput = fc.record({ externalId, draft: wholeLink, match });
const upsert = command("upsert", upsertInput, async (model, target, { externalId, draft, match }) => {
  const input = withPrefix(draft, target);
  const link = model.byExternalId(externalId);
  const expected = model.expectUpsert(externalId, input, match);
  const path = `/v1/links/by-external-id/${encodeURIComponent(externalId)}`;
  const headers = matchHeader(match, link);
  const reply = await target.api.send<LinkBody>("PUT", path, { json: input, headers });
  if (!assertStatus(reply, expected)) return;
  if (link) model.replace(link, input, reply.body, target.shortUrl);
  const whole = { ...input, external_id: externalId };
  assertShows(reply, link ?? model.create(whole, reply.body, target.shortUrl));
});

const getInput = fc.record({ index, isCached: fc.boolean() });
const get = command("get", getInput, async (links, { api }, { index, isCached }) => {
  const link = links.at(index);
  const headers: Record<string, string> = isCached && link ? { "if-none-match": tagOf(link) } : {};
  const reply = await api.get(`/v1/links/${link?.view.id ?? "lnk_unknown"}`, headers);
  if (!link || link.isDeleted) assertStatus(reply, { status: 404, codes: ["not_found"] });
  else if (isCached) assert.equal(reply.status, 304);
  else assertShows(reply, link);
});

const patchInput = fc.record({ index, draft: changes, match });
const patch = command("patch", patchInput, async (links, target, { index, draft, match }) => {
  const input = withPrefix(draft, target);
  const link = links.at(index);
  const expected = links.expectChange(link, input, match);
  const path = `/v1/links/${link?.view.id ?? "lnk_unknown"}`;
  const headers = matchHeader(match, link);
  const reply = await target.api.send<LinkBody>("PATCH", path, { json: input, headers });
  if (!assertStatus(reply, expected) || !link) return;
  links.update(link, input, reply.body, target.shortUrl);
  assertShows(reply, link);
});

const removeInput = fc.record({ index, match });
const remove = command("delete", removeInput, async (links, { api }, { index, match }) => {
  const link = links.at(index);
  const expected = links.expectChange(link, {}, match);
  const path = `/v1/links/${link?.view.id ?? "lnk_unknown"}`;
  const reply = await api.send("DELETE", path, { headers: matchHeader(match, link) });
  if (expected.codes) return void assertStatus(reply, expected);
  assert.equal(reply.status, 204);
  if (!link) return;
  link.isDeleted = true;
});

const followInput = fc.record({ index, isHead: fc.boolean() });
const follow = command("follow", followInput, async (links, { visitor, prefix }, { index, isHead }) => {
  const link = links.at(index);
  const { status, location, isCounted } = links.expectFollow(link);
  const reply = await visitor.send(isHead ? "HEAD" : "GET", `/${link?.view.slug ?? `${prefix}-unknown`}`);
  assert.equal(reply.status, status);
  assert.equal(reply.headers.get("location"), location ?? null);
  if (link && isCounted && !isHead) link.view.clicks++;
});

const filter: fc.Arbitrary<Filter> = fc.record(
  {
    search: fc.constantFrom("spring", "100%", "_", "EXAMPLE.ORG", "-A"),
    tag,
    archived: fc.boolean(),
    sort: fc.constantFrom("created_at", "-created_at", "clicks", "-clicks"),
    url,
    external_id: externalId,
  },
  { requiredKeys: [] },
);
const listInput = fc.record({ filter, limit: fc.integer({ min: 1, max: 3 }) });
const list = command("list", listInput, async (links, { api }, { filter, limit }) => {
  const expected = links.list(filter);
  const seen: LinkBody[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ limit: String(limit) });
    for (const [name, value] of Object.entries(filter)) query.set(name, String(value));
    if (cursor) query.set("cursor", cursor);
    const { status, body, text } = await api.get<PageBody>(`/v1/links?${query}`);
    assert.equal(status, 200, text);
    assert.ok(body.data.length === limit || body.next_cursor === null, "only the last page may be short");
    seen.push(...body.data);
    cursor = body.next_cursor;
  } while (cursor);
  const withoutTime = ({ last_clicked_at, ...view }: LinkBody) => ({
    ...view,
    isClicked: last_clicked_at !== null,
  });
  assert.deepEqual(
    seen.map(withoutTime),
    expected.map((view) => ({ ...withoutTime(view), isClicked: view.clicks > 0 })),
  );
});

export const linkCommands = [create, create, bulk, upsert, get, patch, remove, follow, follow, list];
