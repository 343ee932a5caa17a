import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { generateApi } from "../../../client/generate.ts";
import { createClient, LinkgateError } from "../../../client/src/index.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { ROOT } from "../../harness/program.ts";

const {
  service,
  app: { clientId, clientSecret },
} = await shareApi();
const linkgate = createClient({ baseUrl: service.url, clientId, clientSecret });

test("the types are those of the API", (t) => {
  // Written by `npm run generate --workspace client`.
  t.is(readFileSync(path.join(ROOT, "client/src/api.ts"), "utf8"), generateApi());
});

test("a link is created, read, updated and deleted", async (t) => {
  const { id } = await linkgate.createLink({ url: "https://example.com/a", tags: ["mail"] });
  t.is((await linkgate.getLink({ id })).url, "https://example.com/a");
  t.is((await linkgate.updateLink({ id, title: "Spring sale" })).title, "Spring sale");
  const { data } = await linkgate.listLinks({ tag: "mail", limit: 1 });
  t.deepEqual([data.length, data[0]?.id], [1, id]);
  t.is(await linkgate.deleteLink({ id }), undefined);
});

test("a link is created or replaced by an external ID that needs encoding", async (t) => {
  const external_id = "spring/sale 1?&é";
  const first = await linkgate.upsertLink({ external_id, url: "https://example.com/a" });
  const second = await linkgate.upsertLink({ external_id, url: "https://example.com/b" });
  t.is(second.id, first.id);
  t.is(second.external_id, external_id);
});

test("an update that another one preceded is refused", async (t) => {
  const { id } = await linkgate.createLink({ url: "https://example.com/" });
  let etag = "";
  await linkgate.getLink({ id }, { onResponse: ({ headers }) => (etag = headers.get("ETag") ?? "") });
  await linkgate.updateLink({ id, title: "first" }, { ifMatch: etag });
  const stale = linkgate.updateLink({ id, title: "second" }, { ifMatch: etag });
  const error = await t.throwsAsync(stale, { instanceOf: LinkgateError });
  t.is(error.code, "precondition_failed");
});

test("for await goes through all pages of a list", async (t) => {
  const own = createClient({ baseUrl: service.url, ...(await service.createOrganization()) });
  t.deepEqual(await Array.fromAsync(own.listLinks()), []);
  const urls = Array.from({ length: 7 }, (_, index) => `https://example.com/${index}`);
  const { results } = await own.createLinks({ links: urls.map((url) => ({ url })) });
  t.true(results.every(({ status }) => status === 201));
  const found = [];
  for await (const { url } of own.listLinks({ limit: 3 })) found.push(url);
  t.deepEqual(found.toSorted(), urls);
  const { next_cursor } = await own.listLinks({ limit: 3 });
  const second = await own.listLinks({ limit: 3, cursor: next_cursor ?? "" });
  const onSecond = second.data.map(({ url }) => url);
  t.deepEqual(onSecond, found.slice(3, 6));
});

test("a bulk update is sent with an idempotency key", async (t) => {
  const { id } = await linkgate.createLink({ url: "https://example.com/" });
  const input = { ids: [id], changes: { add_tags: ["sale"] } };
  const options = { idempotencyKey: "once" };
  const { results } = await linkgate.updateLinks(input, options);
  t.deepEqual(results[0]?.link?.tags, ["sale"]);
  let replayed: string | null = "";
  const onResponse = ({ headers }: Response) => (replayed = headers.get("Idempotency-Replayed"));
  t.deepEqual(await linkgate.updateLinks(input, { ...options, onResponse }), { results });
  t.is(replayed, "true");
});

test("an error on a later page ends the iteration", async (t) => {
  const pages = linkgate.listLinks({ cursor: "forged" });
  const error = await t.throwsAsync(Array.fromAsync(pages), { instanceOf: LinkgateError });
  t.is(error.code, "invalid_cursor");
});

test("an error has what the API says, with its fields and the request ID", async (t) => {
  const refused = linkgate.createLink({ url: "ftp://example.com/", title: "" });
  const error = await t.throwsAsync(refused, { instanceOf: LinkgateError });
  t.like(error, { name: "LinkgateError", status: 422, code: "invalid_request", message: error.detail });
  t.deepEqual(error.errors.map(({ field }) => field).sort(), ["title", "url"]);
  t.regex(error.requestId ?? "", /^[0-9a-f-]{36}$/);
});

test("what is no ID is refused, and no request is sent", async (t) => {
  const never = createClient({ baseUrl: service.url, accessToken: () => t.fail() as never });
  const expected = { instanceOf: TypeError, message: "id must be an ID" };
  // The last two would be other paths.
  for (const id of ["", undefined, ".", ".."])
    await t.throwsAsync(never.getLinkAnalytics({ id } as { id: string }), expected, id);
});

test("a base URL that is none is refused when the client is created", (t) => {
  const create = () => createClient({ baseUrl: "links.example", clientId, clientSecret });
  t.throws(create, { instanceOf: TypeError });
});
