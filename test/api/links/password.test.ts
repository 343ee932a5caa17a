import test from "ava";
import { parse } from "node-html-parser";
import { fingerprintOf } from "../../../resources/idempotency/run-once.ts";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

export const databases = "all";

const { service, knex } = await startServiceWithDatabase();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
const visitor = apiAt(service.url);

const PASSWORD = " Früh+ling &=🌷 ";
const URL = "https://destination.example/secret?a=1";
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const FORM = "application/x-www-form-urlencoded";

const protect = (fields: object = {}) => api.createLink({ url: URL, password: PASSWORD, ...fields });
const read = async ({ id }: LinkBody) => (await api.get(`/v1/links/${id}`)).body;
const patch = (id: string, json: object) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });

function enter(path: string, password: string, headers: Record<string, string> = { accept: BROWSER }) {
  const body = new URLSearchParams({ password }).toString();
  return visitor.send("POST", `/${path}`, { body, headers: { "content-type": FORM, ...headers } });
}

/** Returns the text of all rows of the database but those of the column that has hashes. */
async function readDatabase(): Promise<string> {
  const rows = await Promise.all(
    ["links", "events", "deliveries", "idempotency_keys", "sign_in_failures"].map((table) => knex(table)),
  );
  return JSON.stringify(rows.flat().map(({ password_hash: _, ...row }: Record<string, unknown>) => row));
}

test("the password is stored as an argon2id hash, and neither returned nor recorded anywhere", async (t) => {
  const headers = { "Idempotency-Key": "protected" };
  const json = { url: URL, password: PASSWORD };
  const created = await api.send<LinkBody>("POST", "/v1/links", { json, headers });
  const { id } = created.body;
  const replies = [created, await api.get(`/v1/links/${id}`), await api.get("/v1/links")];
  t.true(created.body.has_password);
  const [stored] = await knex("idempotency_keys");
  t.not(stored?.request_hash, fingerprintOf("createLink", json), "others could guess the password from it");
  const changed = await patch(id, { password: "another one" });
  const row = await knex("links").where({ id }).first();
  t.regex(String(row?.password_hash), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.is((await knex("events").where({ subject: id, audited: true })).length, 2);
  for (const text of [...replies, changed].map((reply) => reply.text).concat(await readDatabase())) {
    t.notRegex(text, /argon2|another one/);
    t.false(text.includes(JSON.stringify(PASSWORD).slice(1, -1)));
  }
  const replayed = await api.send<LinkBody>("POST", "/v1/links", { json, headers });
  t.is(replayed.headers.get("idempotency-replayed"), "true");
  t.true(replayed.body.has_password);
});

test("changing the password is a change with a version and an event, which has no value", async (t) => {
  const link = await api.createLink();
  t.false(link.has_password);
  const passwordOf = async () => (await knex("links").where({ id: link.id }).first())?.password_hash;
  const updates = async (): Promise<{ changed: string[]; link: { hasPassword?: boolean } }[]> => {
    const recorded = { subject: link.id, type: "link.updated" as const, audited: true };
    const events = await knex("events").where(recorded).orderBy("id");
    return events.map(({ data }) => JSON.parse(data as string));
  };
  const etagOf = async (json: object) => (await patch(link.id, json)).headers.get("etag");
  t.is(await etagOf({ password: null }), '"1"', "there is none to remove");
  t.is(await etagOf({ password: "spring" }), '"2"');
  const first = await passwordOf();
  t.is(await etagOf({ title: "Spring" }), '"3"');
  t.is(await passwordOf(), first);
  t.true((await read(link)).has_password);
  t.is(await etagOf({ password: null }), '"4"');
  t.is(await passwordOf(), null);
  t.false((await read(link)).has_password);
  const changes = (await updates()).map(({ changed, link: { hasPassword } }) => `${changed} ${hasPassword}`);
  t.deepEqual(changes, ["password true", "title undefined", "password false"]);
  const stale = { json: { password: "stale" }, headers: { "if-match": '"1"' } };
  t.is((await api.send("PATCH", `/v1/links/${link.id}`, stale)).status, 412);
});

test("a PUT without a password keeps it, and one with null removes it", async (t) => {
  const put = (json: object) =>
    api.send<LinkBody>("PUT", "/v1/links/by-external-id/kept", { json: { url: URL, ...json } });
  t.true((await put({ password: PASSWORD })).body.has_password);
  t.true((await put({ title: "Kept" })).body.has_password);
  t.false((await put({ password: null })).body.has_password);
});

test("a deleted link loses the hash", async (t) => {
  const { id } = await protect();
  await api.send("DELETE", `/v1/links/${id}`);
  t.is((await knex("links").where({ id }).first())?.password_hash, null);
});

test("a browser gets a page that asks for the password, and reveals nothing of the link", async (t) => {
  const link = await protect({ title: "Spring & sale", redirect_type: 301 });
  for (const path of [link.slug, `${link.slug}/`, `${link.slug}?utm_source=<script>`]) {
    const { status, headers, text } = await visitor.get(`/${path}`, { accept: BROWSER });
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^text\/html/);
    t.is(headers.get("cache-control"), "private, no-store");
    t.is(headers.get("x-robots-tag"), "noindex");
    t.regex(headers.get("vary") ?? "", /accept/i);
    t.is(headers.get("location"), null);
    t.is(headers.get("set-cookie"), null);
    const policy = headers.get("content-security-policy") ?? "";
    t.regex(policy, /default-src 'none'/);
    t.notRegex(policy, /form-action/);
    t.notRegex(text, /destination\.example|secret|Spring|org_|lnk_|<script|utm_/);
    const form = parse(text).querySelector("form");
    t.is(form?.getAttribute("method"), "post");
    t.is(form?.getAttribute("action"), undefined, "it is sent to the URL of the page");
    const inputs = form?.querySelectorAll("input").map((input) => input.getAttribute("name"));
    t.deepEqual(inputs, ["password"]);
  }
  const head = await visitor.send("HEAD", `/${link.slug}`, { headers: { accept: BROWSER } });
  t.deepEqual([head.status, head.headers.get("location")], [200, null]);
  t.is((await read(link)).clicks, 0);
});

test("programs get a problem instead of the page", async (t) => {
  const { slug } = await protect();
  const required = { status: 403, code: "password_required" };
  for (const accept of ["application/json", "*/*", "application/json, text/html;q=0.5"]) {
    isProblem(t, await visitor.get(`/${slug}`, { accept }), required);
    isProblem(t, await enter(slug, "wrong", { accept }), required);
  }
  t.is((await visitor.send("HEAD", `/${slug}`)).status, 403);
});

test("the right password redirects with a GET and what the visitor added, counted once", async (t) => {
  for (const redirect_type of [301, 302, 307, 308]) {
    const link = await protect({ redirect_type });
    const wrong = await enter(`${link.slug}?b=2`, `${PASSWORD}x`);
    t.is(wrong.status, 403);
    t.regex(wrong.headers.get("cache-control") ?? "", /no-store/);
    const page = parse(wrong.text);
    t.is(page.querySelector("[role=alert]")?.text, "The password is wrong.");
    t.is(page.querySelector("#password")?.getAttribute("value"), undefined);
    t.notRegex(wrong.text, /destination\.example/);
    t.is((await read(link)).clicks, 0);

    const { status, headers, text } = await enter(`${link.slug}?b=2`, PASSWORD);
    t.deepEqual([status, headers.get("location"), text], [303, `${URL}&b=2`, ""]);
    t.regex(headers.get("cache-control") ?? "", /no-store/);
    t.is(headers.get("set-cookie"), null);
    for (const name of ["referrer-policy", "content-security-policy"]) t.is(headers.get(name), null);
    t.is((await read(link)).clicks, 1);
  }
});

test("only exactly the password is right", async (t) => {
  const { slug } = await protect();
  const others = ["", PASSWORD.trim(), PASSWORD.toLowerCase(), PASSWORD.normalize("NFD"), "x".repeat(129)];
  for (const other of others) t.is((await enter(slug, other)).status, 403, other);
  t.is((await visitor.get(`/${slug}?password=${encodeURIComponent(PASSWORD)}`)).status, 403);
  const body = `password=${encodeURIComponent(PASSWORD)}&password=x`;
  const headers = { "content-type": `${FORM}; charset=UTF-8` };
  t.is((await visitor.send("POST", `/${slug}`, { body, headers })).status, 303, "the first one counts");
});

test("max_clicks counts only visitors who entered the password", async (t) => {
  const { slug } = await protect({ max_clicks: 2 });
  for (let visit = 0; visit < 3; visit++) {
    await visitor.get(`/${slug}`, { accept: BROWSER });
    await enter(slug, "wrong");
  }
  t.deepEqual([(await enter(slug, PASSWORD)).status, (await enter(slug, PASSWORD)).status], [303, 303]);
  t.is((await enter(slug, PASSWORD)).status, 410);
  t.is((await visitor.get(`/${slug}`, { accept: BROWSER })).status, 410);
});

test("an unavailable link doesn't ask: it answers as others do, and its fallback is followed", async (t) => {
  const [gone, replaced] = [await protect(), await protect({ fallback_url: "https://example.com/gone" })];
  for (const { id } of [gone, replaced]) await patch(id, { archived: true });
  for (const reply of [await visitor.get(`/${gone.slug}`), await enter(gone.slug, "wrong", {})])
    isProblem(t, reply, { status: 410, code: "link_gone" });
  const followed = [await visitor.get(`/${replaced.slug}`), await enter(replaced.slug, "wrong")];
  const answers = followed.map(({ status, headers }) => `${status} ${headers.get("location")}`);
  t.deepEqual(answers, ["302 https://example.com/gone", "303 https://example.com/gone"]);
});

test("a link without a password refuses POST, and one whose password is removed redirects immediately", async (t) => {
  const open = await api.createLink();
  for (const path of [open.slug, "no-such-link"]) {
    const { status, headers } = await enter(path, PASSWORD);
    t.deepEqual([status, headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);
  }
  const { id, slug } = await protect();
  t.is((await visitor.get(`/${slug}`)).status, 403);
  await patch(id, { password: null });
  t.is((await visitor.get(`/${slug}`)).headers.get("location"), URL);
  t.is((await enter(slug, PASSWORD)).status, 405);
  await patch(id, { password: "new one" });
  t.is((await visitor.get(`/${slug}`)).status, 403);
  t.is((await enter(slug, "new one")).status, 303);
});

test("another body than a small form is refused", async (t) => {
  const { slug } = await protect();
  const send = (body: string, type: string) =>
    visitor.send("POST", `/${slug}`, { body, headers: { "content-type": type } });
  const large = await send(`password=${"x".repeat(4096)}`, FORM);
  isProblem(t, large, { status: 413, code: "body_too_large" });
  for (const type of ["application/json", "text/plain", "multipart/form-data; boundary=x"])
    isProblem(t, await send("{}", type), { status: 415, code: "unsupported_media_type" });
  isProblem(t, await visitor.send("POST", `/${slug}`), { status: 415, code: "unsupported_media_type" });
});

test("the preview says only that the link has a password", async (t) => {
  const { slug } = await protect({ title: "Spring sale" });
  const { status, text } = await visitor.get(`/${slug}+`);
  t.is(status, 200);
  t.notRegex(text, /destination\.example|Spring/);
  const page = parse(text);
  t.is(page.querySelector("h1")?.text, "This link is password-protected");
  t.is(page.querySelector("a.button")?.getAttribute("href"), `/${slug}`);
});
