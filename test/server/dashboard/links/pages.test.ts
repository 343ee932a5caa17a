import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { LINK_DEFAULTS } from "../../../../resources/links/types.ts";
import { BROWSER, type LinkBody } from "../../../harness/clients/api.ts";
import { linksInBrowser, typedIn } from "../../../harness/clients/pages.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const follow = (link: LinkBody, headers: Record<string, string> = {}) =>
  fetch(link.short_url, { redirect: "manual", headers });

for (const done of ["constructor", "toString", "__proto__", "unknown", "link-created&done=link-deleted"]) {
  test(`an address with done=${done} shows no confirmation`, async (t) => {
    const { browser, path } = await linksInBrowser(service);
    const page = await browser.open(`${service.url}${path}?done=${done}`);
    t.is(page.status, 200);
    t.is(page.html.querySelector("[role=status]"), null);
    t.false(page.text.includes("native code"));
  });
}

test("the list creates a link from only a URL, and shows it", async (t) => {
  const { browser, path, list, open } = await linksInBrowser(service);
  const empty = await open();
  t.regex(empty.text, /No links yet/);
  const created = await browser.press(empty, "Create link", { url: "https://example.com/a?b=1&c=<d>" });
  const [link] = await list();
  if (!link) return t.fail();
  t.is(created.url, `${service.url}${path}/${link.id}?done=link-created`);
  t.is(created.html.querySelector(".copyable code")?.text, link.short_url);
  t.is(created.html.querySelector("[data-copy]")?.attributes["data-copy"], link.short_url);
  t.is(created.html.querySelector('a[rel="noreferrer"]')?.attributes.href, link.url);
  t.false(created.text.includes("<d>"));
  const listed = await open();
  t.is(listed.html.querySelector("td a")?.attributes.href, `${path}/${link.id}`);
});

test("a link can be archived and restored", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  const link = await create();
  const archived = await browser.press(await open(`/${link.id}`), "Archive");
  t.regex(archived.text, /Link archived/);
  t.is((await follow(link)).status, 410);
  t.false((await open()).text.includes(link.slug));
  t.true((await open("?archived=true")).text.includes(link.slug));
  t.true((await open("?archived=all")).text.includes(link.slug));
  const restored = await browser.press(archived, "Restore");
  t.regex(restored.text, /Link restored/);
  t.is((await follow(link)).status, 302);
});

test("a link is edited on its page, and keeps the fields that aren't there", async (t) => {
  const { browser, create, open, look } = await linksInBrowser(service);
  const { id, slug } = await create({ max_clicks: 7, tags: ["old"] });
  const fields = { url: "https://example.com/edited", title: "Edited", tags: "new, two" };
  const saved = await browser.press(await open(`/${id}`), "Save", fields);
  t.regex(saved.text, /Link saved|Link updated/);
  const { url, title, tags, max_clicks } = await look(id);
  t.deepEqual({ url, title, tags, max_clicks }, { ...fields, tags: ["new", "two"], max_clicks: 7 });
  t.is((await look(id)).slug, slug);
});

test("archiving and restoring a link can be undone from the confirmation", async (t) => {
  const { browser, create, open, look } = await linksInBrowser(service);
  const { id } = await create();
  const archived = await browser.press(await open(`/${id}`), "Archive");
  const restored = await browser.press(archived, "Undo");
  t.regex(restored.text, /Link restored/);
  t.false((await look(id)).archived);
  await browser.press(restored, "Undo");
  t.true((await look(id)).archived);
  const stale = await browser.open(restored.url);
  t.is(stale.html.querySelector("[role=status] form"), null, "the link has another state since");
  const forged = await open(`/${id}?done=link-archived&undo=${id}`);
  t.is(forged.html.querySelector("[role=status] form"), null, "the address isn't signed");
});

test("a link is deleted only after a confirmation page", async (t) => {
  const { browser, path, create, open, list } = await linksInBrowser(service);
  const link = await create();
  const confirmation = await open(`/${link.id}/delete`);
  t.regex(confirmation.text, /cannot be undone/);
  t.is((await list()).length, 1);
  const deleted = await browser.press(confirmation, "Delete link");
  t.is(deleted.url, `${service.url}${path}?done=link-deleted`);
  t.is((await follow(link)).status, 410);
  t.is((await open(`/${link.id}`)).status, 404);
});

test("the confirmation page offers to archive a link instead", async (t) => {
  const { browser, create, open, look } = await linksInBrowser(service);
  const link = await create();
  await browser.press(await open(`/${link.id}/delete`), "Archive instead");
  t.true((await look(link.id)).archived);
});

test("a concurrent change is not overwritten until the form is saved again", async (t) => {
  const { browser, owner, path, create, open, look } = await linksInBrowser(service);
  const link = await create({ tags: ["old"] });
  const form = await open(`/${link.id}/edit`);
  const json = {
    title: "Theirs",
    tags: ["new", "shop"],
    redirect_type: 301,
    max_clicks: null,
    fallback_url: "https://example.com/theirs",
  };
  await owner.api.send("PATCH", `${path}/${link.id}`, { json });
  const rejected = await browser.press(form, "Save link", {
    title: "Mine",
    max_clicks: "5",
    utm_source: "mine",
  });
  t.is(rejected.status, 412);
  t.regex(
    rejected.html.querySelector("[role=alert]")?.text ?? "",
    /This link was changed while you were editing it/,
  );
  t.deepEqual(
    rejected.html
      .querySelectorAll("main tbody tr")
      .map((row) => row.querySelectorAll("td").map(({ text }) => text)),
    [
      ["Destination URL", link.url, `${link.url}?utm_source=mine`],
      ["Title", "Theirs", "Mine"],
      ["Tags", "new, shop", "old"],
      ["Click limit", "empty", "5"],
      ["Redirect", "301: permanent", "302: temporary (default)"],
      ["Fallback URL", "https://example.com/theirs", "empty"],
    ],
  );
  const reload = await browser.open(new URL(linkTo(rejected, "Reload"), rejected.url).href);
  t.is(typedIn(reload, "title"), "Theirs");
  t.is(typedIn(rejected, "title"), "Mine");
  t.is((await look(link.id)).title, "Theirs");
  await browser.press(rejected, "Save link");
  t.like(await look(link.id), {
    title: "Mine",
    tags: ["old"],
    redirect_type: 302,
    max_clicks: 5,
    fallback_url: null,
  });
  t.is((await look(link.id)).url, `${link.url}?utm_source=mine`);
});

/** Creates a link with an expiry that the service rejects. */
async function createExpired(organizationId: string, slug: string): Promise<{ id: string }> {
  const expiresAt = Date.parse("2020-01-31T12:00:00Z");
  const fields = { ...LINK_DEFAULTS, url: "https://example.com/", slug, expiresAt };
  return (await service.storage.links.create(organizationId, { id: "operator" }, fields)) as { id: string };
}

test("an expired link keeps its expiry when another field is changed", async (t) => {
  const { browser, organization, open, look } = await linksInBrowser(service);
  const { id } = await createExpired(organization.id, "expired");
  const page = await open(`/${id}`);
  t.regex(page.text, /expired/);
  await browser.press(await open(`/${id}/edit`), "Save link", { title: "Expired" });
  t.like(await look(id), { title: "Expired", expires_at: "2020-01-31T12:00:00.000Z" });
});

test("the page of a link shows its fallback URL, its limit and its expiry", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const facts = async (link: LinkBody) =>
    Object.fromEntries(
      (await open(`/${link.id}`)).html
        .querySelectorAll(".facts dt")
        .map((term) => [term.text, term.nextElementSibling?.text ?? ""]),
    );
  const limited = await facts(
    await create({
      fallback_url: "https://example.com/gone",
      max_clicks: 1200,
      expires_at: "2030-01-31T12:00:00Z",
    }),
  );
  t.is(limited["Fallback URL"], "https://example.com/gone");
  t.regex(limited.Clicks ?? "", /limit 1,200/);
  t.regex(limited.Expires ?? "", /Jan 31, 2030/);
  const plain = await facts(await create());
  t.false("Fallback URL" in plain || "Expires" in plain);
});

test("links that expired or reached their limit are marked among those that aren't archived", async (t) => {
  const { create, open, organization } = await linksInBrowser(service);
  const expired = await createExpired(organization.id, "expired-in-list");
  const used = await create({ max_clicks: 1 });
  const usedByBots = await create({ max_clicks: 1 });
  const plain = await create();
  await follow(used, { "user-agent": BROWSER });
  await follow(usedByBots, { "user-agent": "Googlebot/2.1" });
  const page = await open();
  const markOf = ({ id }: { id: string }) =>
    page.html.querySelector(`[href$="${id}"]`)?.closest("tr")?.querySelector(".badge.warn")?.text;
  t.deepEqual([expired, used, usedByBots, plain].map(markOf), [
    "expired",
    "limit reached",
    "limit reached, 1 from bots",
    undefined,
  ]);
  t.deepEqual(
    page.html.querySelectorAll("#archived option").map(({ text }) => text),
    ["Not archived", "Archived", "All"],
  );
});

test("the export says how many links of the filter it has", async (t) => {
  const { create, open } = await linksInBrowser(service);
  await create({ tags: ["mail"] });
  await create({ tags: ["mail"] });
  await create();
  const nameIn = async (query: string) => (await open(query)).html.querySelector("[data-export]")?.text;
  t.is(await nameIn(""), "Export 3 links as CSV");
  t.is(await nameIn("?limit=1"), "Export 3 links as CSV");
  t.is(await nameIn("?tag=mail"), "Export 2 links as CSV");
  t.is(await nameIn("?tag=none"), "Export 0 links as CSV");
});

const FILTERS: [query: string, found: string[]][] = [
  ["", ["spring", "autumn"]],
  ["?search=SPRING", ["spring"]],
  ["?search=leaves", ["autumn"]],
  ["?search=%25", []],
  ["?search=&tag=&archived=false", ["spring", "autumn"]],
  ["?tag=mail", ["spring"]],
  ["?tag=Mail", []],
  ["?tag=mail&archived=all", ["spring", "winter"]],
  ["?archived=true", ["winter"]],
];

test("links are filtered by text, tag and archived state", async (t) => {
  const { create, open, member, path } = await linksInBrowser(service);
  const slugs = new Map<string, string>();
  for (const [name, title, tags] of [
    ["spring", "Spring sale", ["mail"]],
    ["autumn", "Falling leaves", []],
    ["winter", "Snow", ["mail"]],
  ] as const) {
    const { id, slug } = await create({ title, tags });
    slugs.set(slug, name);
    if (name === "winter") await member.api.send("PATCH", `${path}/${id}`, { json: { archived: true } });
  }
  for (const [query, expected] of FILTERS) {
    const page = await open(query);
    t.deepEqual(
      shownIn(page)
        .map((slug) => slugs.get(slug) ?? slug)
        .sort(),
      [...expected].sort(),
      query,
    );
    if (expected.length === 0) t.regex(page.text, /No links found/);
  }
  const filtered = await open("?search=sale&archived=all");
  t.is(typedIn(filtered, "search"), "sale");
  t.is(typedIn(filtered, "archived"), "all");
});

test("pagination keeps the filter", async (t) => {
  const { create, open, browser } = await linksInBrowser(service);
  for (let count = 0; count < 30; count++) await create({ tags: count % 30 ? ["many"] : [] });
  const first = await open("?tag=many&archived=all");
  t.is(shownIn(first).length, 25);
  const second = await browser.open(new URL(linkTo(first, "Next"), first.url).href);
  t.is(shownIn(second).length, 4);
  t.is(new Set([...shownIn(first), ...shownIn(second)]).size, 29);
  const back = await browser.open(new URL(linkTo(second, "Previous"), second.url).href);
  t.deepEqual(shownIn(back), shownIn(first));
});

const INVALID_QUERIES: [query: string, field: string][] = [
  ["?cursor=invalid", "cursor"],
  ["?archived=perhaps", "archived"],
  [`?search=${"a".repeat(256)}`, "search"],
  ["?sort=title", "sort"],
  ["?order=asc", "order"],
];

for (const [query, field] of INVALID_QUERIES) {
  test(`the query ${query.slice(0, 20)} is rejected with an error that names ${field}, and links are still shown`, async (t) => {
    const { create, open } = await linksInBrowser(service);
    const { slug } = await create();
    const page = await open(query);
    t.is(page.status, 422);
    const alert = page.html.querySelector("[role=alert]")?.text ?? "";
    t.true(alert.includes(field) || page.html.querySelector(`#${field}-error`) !== null, alert);
    t.deepEqual(shownIn(page), [slug]);
  });
}

test("a form without a valid CSRF token is rejected", async (t) => {
  const { browser, create, path, look, list } = await linksInBrowser(service);
  const link = await create();
  for (const [address, fields] of [
    ["", { url: "https://example.com/forged" }],
    [`/${link.id}`, { archived: "true" }],
    [`/${link.id}/delete`, {}],
  ] as const) {
    const body = new URLSearchParams({ ...fields, csrf: "a".repeat(43) });
    const headers = { origin: service.url };
    const rejected = await browser.open(service.url + path + address, { method: "POST", body, headers });
    t.is(rejected.status, 403, address);
  }
  t.deepEqual(await look(link.id), link);
  t.is((await list()).length, 1);
});

test("the fields of a link are escaped on every page", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const title = `"><script>alert(1)</script>`;
  const link = await create({ title, tags: [`<img src=x>`], metadata: { "<b>": "<i>" } });
  for (const address of ["", `/${link.id}`, `/${link.id}/edit`, `/${link.id}/delete`]) {
    const page = await open(address);
    t.is(
      page.html.querySelectorAll("main script:not([src]), main img:not([src$='qr.svg']), b, i").length,
      0,
      address,
    );
  }
});

const shownIn = ({ html }: Page) =>
  html.querySelectorAll("a.short").map(({ text }) => text.split("/").at(-1) as string);

function linkTo({ html }: Page, text: string): string {
  const found = html.querySelectorAll("a").find((link: HTMLElement) => link.text === text);
  return found?.attributes.href?.replaceAll("&amp;", "&") ?? "no such link";
}

const positionOn = (page: Page) => page.html.querySelector(".pages .soft")?.text;

test("a list says which of how many links a page has, also of a filtered one", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  for (let number = 0; number < 7; number++) await create({ tags: number === 0 ? [] : ["news"] });
  t.is(positionOn(await open()), "7 links");
  for (const [filter, total] of Object.entries({
    "archived=all": 7,
    "archived=false": 7,
    "tag=news": 6,
    "search=EXAMPLE&sort=-clicks": 7,
  })) {
    const first = await open(`?limit=3&${filter}`);
    t.is(positionOn(first), `1–3 of ${total} links`, filter);
    const second = await browser.open(new URL(linkTo(first, "Next"), first.url).href);
    t.is(positionOn(second), `4–6 of ${total} links`);
    t.is(
      positionOn(await browser.open(new URL(linkTo(second, "Previous"), first.url).href)),
      `1–3 of ${total} links`,
    );
    if (total === 6) continue;
    t.is(positionOn(await browser.open(new URL(linkTo(second, "Next"), first.url).href)), "7 of 7 links");
  }
  t.is(positionOn(await open("?tag=news&limit=6")), "6 links");
});

test("the last page ends with the number of links, also if links were created after the first page", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  for (let number = 0; number < 4; number++) await create();
  const first = await open("?limit=2");
  await create();
  const last = await browser.open(new URL(linkTo(first, "Next"), first.url).href);
  t.is(positionOn(last), "4–5 of 5 links");
});
