import test from "ava";
import { QR_FORMATS, qrQuery } from "../../../server/dashboard/links/qr-code.ts";
import { BROWSER, isMissing, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { alertOn, follow, isMarked, linksInBrowser, textsOn, typedIn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { OPERATOR, postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const elsewhere = await startTestService({ SHORT_URL: "https://go.example" });

const visit = ({ short_url }: LinkBody, agent = BROWSER) =>
  fetch(short_url, { redirect: "manual", headers: { "user-agent": agent } });

test("on the Free plan a member can create, find and delete links, with no other fields than over REST", async (t) => {
  const { member, organization, path, list } = await linksInBrowser(service);
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  const { api } = member;
  const url = "https://example.com/a";
  const others = { organization_id: "org_1", clicks: 7 };
  const refused = await api.send("POST", path, { json: { url, ...others } });
  isProblem(t, refused, { status: 422, code: "unknown_field", fields: Object.keys(others) });
  t.deepEqual(await list(), []);
  const { status, body: created } = await api.send<LinkBody>("POST", path, { json: { url, tags: ["x"] } });
  t.is(status, 201);
  t.is(created.created_by, member.id);
  const one = `${path}/${created.id}`;
  t.is((await visit(created)).headers.get("location"), url);
  t.like((await api.get<PageBody>(`${path}?tag=x`)).body.data, [{ id: created.id, clicks: 1 }]);
  t.is((await api.send("DELETE", one)).status, 204);
  isMissing(t, await api.get(one));
});

test("the page of a link shows the QR code of its short URL, also renamed, and offers it for download", async (t) => {
  const { browser, path, create, open, member } = await linksInBrowser(service);
  const { id } = await create();
  await member.api.send("PATCH", `${path}/${id}`, { json: { slug: "spring", archived: true } });
  const page = await open(`/${id}`);
  const opened = page.html.querySelectorAll("main a").find(({ text }) => text === "Open");
  t.is(opened?.attributes.href, `${service.url}/spring`);
  const image = page.html.querySelector(".qr img");
  t.regex(image?.attributes.alt ?? "", /^QR code for localhost:\d+\/spring$/);
  const codeOf = (query = {}, origin = service.url) =>
    QR_FORMATS.svg.render(`${origin}/spring`, qrQuery.parse(query));
  const shown = await browser.open(service.url + image?.attributes.src);
  t.is(shown.headers.get("content-type"), "image/svg+xml");
  t.is(shown.headers.get("content-disposition"), null);
  t.is(shown.text, await codeOf());
  t.is((await open(`/${id}/qr.svg?size=300`)).text, await codeOf({ size: 300 }));
  const downloads = page.html.querySelectorAll("a[download]").map(({ attributes }) => attributes.href);
  t.true(downloads[1]?.includes("size=2048"), "the PNG is large enough for print");
  for (const [index, type] of ["svg+xml", "png"].entries()) {
    const { headers } = await browser.open(service.url + downloads[index]);
    t.is(headers.get("content-type"), `image/${type}`);
    t.is(headers.get("content-disposition"), `attachment; filename="spring.${type.slice(0, 3)}"`);
  }
  const rejected = await member.api.send("GET", `${path}/${id}/qr.png?size=127`);
  isProblem(t, rejected, { status: 422, code: "invalid_size", fields: ["size"] });
  const light = await open(`/${id}/qr.png?color=ffee00`);
  t.is(light.status, 422);
  isMarked(t, light, "color", /^Must be darker: its contrast to white is 1\.2:1/);

  const { base, owner } = await createTeam(elsewhere, "free");
  const json = { url: "https://example.com/", slug: "spring" };
  const link = (await owner.api.send<LinkBody>("POST", `${base}/links`, { json })).body;
  const { text } = await owner.api.send("GET", `${base}/links/${link.id}/qr.svg`);
  t.is(text, await codeOf({}, "https://go.example"), "the host is that of SHORT_URL");
});

test("the heads of the list sort it by what the API sorts by, in both directions, and keep the filter", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  const [quiet, busy] = [await create(), await create()];
  await visit(busy);
  const idsOn = ({ html }: Page) =>
    html.querySelectorAll("tbody input").map(({ attributes }) => attributes.value);
  const sortOn = ({ html }: Page) => html.querySelector("[aria-sort]");
  const newest = await open("?search=example");
  t.is(sortOn(newest)?.attributes["aria-sort"], "descending");
  const most = await follow(browser, newest, "Clicks");
  t.is(new URL(most.url).search, "?search=example&sort=-clicks");
  t.is(typedIn(most, "sort"), "-clicks", "the filter keeps it");
  const least = await follow(browser, most, "Clicks");
  t.like(sortOn(least), { text: "Clicks", attributes: { "aria-sort": "ascending" } });
  t.deepEqual(idsOn(most), [busy.id, quiet.id]);
  t.deepEqual(idsOn(least), [quiet.id, busy.id]);
});

const FILLED = {
  url: "https://example.com/spring",
  slug: "spring-2030",
  title: "Spring & <more>",
  tags: "mail, spring , ,mail",
  expires_at: "2030-01-31T12:00",
  max_clicks: "100",
  redirect_type: "307",
  external_id: "my-1",
  fallback_url: "https://example.com/sorry",
};
const IMAGE_URL = "https://example.com/spring.png";
const CARD = { title: "Spring <sale>", description: "Half price\nuntil May", image_url: IMAGE_URL };
const STORE = "https://example.com/store";
const RULE = { "rule-0-os": "iOS", "rule-0-url": STORE };
const DESCRIPTION = { card_description: "Half price\r\nuntil May" };

const isCardOpen = ({ html }: Page) =>
  html.querySelector("[name=card_title]")?.closest("details")?.attributes.open !== undefined;

test("the form creates and edits every field of a link, also of its card and rules", async (t) => {
  const { browser, list, look, open } = await linksInBrowser(service);
  const blank = await open("/new");
  t.false(isCardOpen(blank));
  const card = { card_title: CARD.title, card_image_url: IMAGE_URL };
  const filled = { ...FILLED, ...card, ...DESCRIPTION, "rule-1-os": "iOS", "rule-1-url": STORE };
  const created = await browser.press(blank, "Create link", filled);
  t.is(created.html.querySelector("h1")?.text, "Spring & <more>");
  const facts = textsOn(created, "dl.facts").join("\n");
  const shown = [...Object.values(CARD), "System iOS", "limit 100", "Jan 31, 2030", FILLED.fallback_url];
  for (const text of shown) t.true(facts.includes(text), text);
  const [link] = await list();
  if (!link) return t.fail();
  const values = { tags: ["mail", "spring"], max_clicks: 100, redirect_type: 307 };
  const parts = { card: CARD, rules: [{ if: { os: "iOS" }, url: STORE }] };
  t.like(link as object, { ...FILLED, ...values, ...parts, expires_at: "2030-01-31T12:00:00.000Z" });
  const form = await open(`/${link.id}/edit`);
  for (const [name, value] of Object.entries({ ...FILLED, ...card, ...RULE, tags: "mail, spring" }))
    t.is(typedIn(form, name), value, name);
  t.true(isCardOpen(form));
  t.is(form.html.querySelector("[name=card_description]")?.text, CARD.description);
  t.is(form.html.querySelectorAll("fieldset.rule").length, 3, "one, and two to fill in");
  const unchanged = await browser.press(form, "Save link", DESCRIPTION);
  t.regex(unchanged.text, /Link saved/);
  t.is((await look(link.id)).updated_at, link.updated_at);
  const { url, slug, redirect_type: _, ...optional } = FILLED;
  const names = [...Object.keys(optional), ...Object.keys(RULE), "card_title"];
  const empty = Object.fromEntries(names.map((name) => [name, ""]));
  await browser.press(form, "Save link", { ...empty, card_title: " ", redirect_type: "302" });
  const none = Object.fromEntries(Object.keys(optional).map((name) => [name, null]));
  const removed = { ...none, tags: [], rules: [], card: null };
  t.like((await look(link.id)) as object, { url, slug, ...removed, redirect_type: 302 });
});

test("the form sets, keeps, replaces and removes the password, which it never shows", async (t) => {
  const { browser, list, look, open } = await linksInBrowser(service);
  const url = "https://example.com/";
  await browser.press(await open("/new"), "Create link", { url, password: "  open sesame " });
  const [link] = await list();
  if (!link) return t.fail();
  const isOpenFor = async (password: string) =>
    (await postForm(link.short_url, { password })).headers.get("location") === url;
  t.true(await isOpenFor("  open sesame "));
  const editing = async (fields: object) =>
    browser.press(await open(`/${link.id}/edit`), "Save link", fields as Record<string, string>);
  t.regex((await editing({ title: "Kept" })).text, /Link saved/);
  t.true(await isOpenFor("  open sesame "));
  await editing({ password: "tea and cake" });
  t.deepEqual([await isOpenFor("  open sesame "), await isOpenFor("tea and cake")], [false, true]);
  await editing({ password: "barbecue", remove_password: "true" });
  t.true(await isOpenFor("barbecue"), "a new one isn't removed");
  for (const page of ["", `/${link.id}`, `/${link.id}/edit`]) {
    const { html, text } = await open(page);
    t.notRegex(text, /sesame|tea and|barbecue|argon2/);
    if (page.endsWith("edit")) t.is(typedIn({ html } as Page, "password"), "");
    else t.true(textsOn({ html } as Page, ".badge").includes("password"), page);
  }
  await editing({ remove_password: "true" });
  t.like((await look(link.id)) as object, { has_password: false, title: "Kept" });
  t.is((await visit(link)).status, 302);
  t.is((await open(`/${link.id}/edit`)).html.querySelector("[name=remove_password]"), null);
});

const INVALID_VALUES: [field: string, value: string, message: RegExp][] = [
  ["url", "javascript:alert(1)", /http or https/],
  ["slug", "taken", /taken/],
  ["slug", "docs", /^“docs” is reserved\. Choose another one\.$/],
  ["tags", `${"a".repeat(51)}, b`, /1 to 50 characters/],
  ["expires_at", "tomorrow", /RFC 3339/],
  ["max_clicks", "many", /whole number/],
  ["redirect_type", "200", /301, 302, 307 or 308/],
  ["title", "a".repeat(256), /1 to 255/],
  ["password", "abc", /4 to 128/],
  ["external_id", "mine", /used by another link/],
  ["fallback_url", service.url, /this service/],
  ["card_title", "a".repeat(256), /1 to 255/],
  ["card_image_url", "javascript:alert(1)", /http or https/],
  ["rule-0-language", "german language", /^Must be a language, such as de or pt-BR\.$/],
];

test("an invalid field is rejected with an error beside it, and every value is kept", async (t) => {
  const { browser, create, look, list, open } = await linksInBrowser(service);
  await create({ external_id: "mine", slug: "taken" });
  const link = await create();
  const forms = { "Create link": await open("/new"), "Save link": await open(`/${link.id}/edit`) };
  for (const [field, value, message] of INVALID_VALUES) {
    const filled = { ...FILLED, ...RULE, card_title: "Card", utm_term: "a", slug: "free", [field]: value };
    for (const [button, form] of Object.entries(forms)) {
      const rejected = await browser.press(form, button, filled);
      t.true([409, 422].includes(rejected.status), String(rejected.status));
      isMarked(t, rejected, field, message);
      t.true(isCardOpen(rejected));
      for (const [name, value] of Object.entries(filled))
        if (name !== "redirect_type") t.is(typedIn(rejected, name), value, name);
    }
  }
  const rule = { url: FILLED.url, "rule-0-url": STORE };
  const lone = await browser.press(forms["Create link"], "Create link", rule);
  t.deepEqual(textsOn(lone, "p.error"), ["Must have a condition."]);
  t.is((await list()).length, 2);
  t.deepEqual(await look(link.id), link);
});

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
  t.is(listed.html.querySelector("td .short")?.attributes.href, `${path}/${link.id}`);
});

test("a link is edited on its page, and keeps the fields that aren't there", async (t) => {
  const { browser, create, open, look } = await linksInBrowser(service);
  const { id, slug } = await create({ max_clicks: 7, tags: ["old"], card: CARD });
  const fields = { url: "https://example.com/edited", title: "Edited", tags: "new, two" };
  const saved = await browser.press(await open(`/${id}`), "Save", fields);
  t.regex(saved.text, /Link saved|Link updated/);
  t.like(await look(id), { ...fields, tags: ["new", "two"], max_clicks: 7, slug, card: CARD });
});

test("a link can be archived and restored, and each undone from the confirmation", async (t) => {
  const { browser, create, open, look } = await linksInBrowser(service);
  const link = await create();
  const { id } = link;
  const archived = await browser.press(await open(`/${id}`), "Archive");
  t.is((await visit(link)).status, 410);
  t.false((await open()).text.includes(link.slug));
  const restored = await browser.press(archived, "Undo");
  t.regex(restored.text, /Link restored/);
  t.false((await look(id)).archived);
  await browser.press(restored, "Undo");
  t.true((await look(id)).archived);
  const stale = await browser.open(restored.url);
  t.is(stale.html.querySelector("[role=status] form"), null, "the link has another state since");
  const forged = await open(`/${id}?done=link-archived&undo=${id}`);
  t.is(forged.html.querySelector("[role=status] form"), null, "the address isn't signed");
  for (const done of ["constructor", "unknown", "link-created&done=link-deleted"])
    t.is((await open(`?done=${done}`)).html.querySelector("[role=status]"), null, done);
});

test("a link is deleted only after a confirmation page, which can archive it instead", async (t) => {
  const { browser, path, create, open, list, look } = await linksInBrowser(service);
  const link = await create();
  const confirmation = await open(`/${link.id}/delete`);
  t.regex(confirmation.text, /cannot be undone/);
  t.is((await list()).length, 1);
  await browser.press(confirmation, "Archive instead");
  t.true((await look(link.id)).archived);
  const deleted = await browser.press(confirmation, "Delete link");
  t.is(deleted.url, `${service.url}${path}?done=link-deleted`);
  t.deepEqual(await list(), []);
});

test("a concurrent change is not overwritten until the form is saved again", async (t) => {
  const { browser, owner, path, create, open, look } = await linksInBrowser(service);
  const link = await create({ tags: ["old"], card: CARD });
  const form = await open(`/${link.id}/edit`);
  const fallback_url = "https://example.com/theirs";
  const changes = { title: "Theirs", tags: ["new", "shop"], redirect_type: 301, fallback_url };
  const json = { ...changes, max_clicks: null, card: { ...CARD, title: "Theirs" } };
  await owner.api.send("PATCH", `${path}/${link.id}`, { json });
  const mine = { title: "Mine", max_clicks: "5", utm_source: "mine", card_title: "Mine", ...DESCRIPTION };
  const rejected = await browser.press(form, "Save link", mine);
  t.is(rejected.status, 412);
  t.regex(alertOn(rejected), /This link was changed while you were editing it/);
  t.deepEqual(textsOn(rejected, "main tbody td"), [
    ...["Destination URL", link.url, `${link.url}?utm_source=mine`],
    ...["Title", "Theirs", "Mine"],
    ...["Tags", "new, shop", "old"],
    ...["Click limit", "empty", "5"],
    ...["Redirect", "301: permanent", "302: temporary (default)"],
    ...["Fallback URL", fallback_url, "empty"],
    ...["Card title", "Theirs", "Mine"],
  ]);
  t.is(typedIn(await follow(browser, rejected, "Reload"), "title"), "Theirs");
  t.is(typedIn(rejected, "title"), "Mine");
  t.is((await look(link.id)).title, "Theirs");
  await browser.press(rejected, "Save link");
  const url = `${link.url}?utm_source=mine`;
  const saved = { url, title: "Mine", tags: ["old"], redirect_type: 302, max_clicks: 5, fallback_url: null };
  t.like(await look(link.id), { ...saved, card: { ...CARD, title: "Mine" } });
});

test("an update or deletion of an outdated version is refused", async (t) => {
  const { api, path, create } = await linksInBrowser(service);
  const one = `${path}/${(await create()).id}`;
  const headers = { "if-match": (await api.get(one)).headers.get("etag") ?? "" };
  const send = (method: string) => api.send(method, one, { json: { title: "New" }, headers });
  t.is((await send("PATCH")).status, 200);
  for (const method of ["PATCH", "DELETE"])
    isProblem(t, await send(method), { status: 412, code: "precondition_failed" });
});

test("links that expired or reached their limit are marked among those that aren't archived", async (t) => {
  const { create, open, organization } = await linksInBrowser(service);
  // The API rejects such an expiry.
  const fields = linkFields({ slug: "expired-in-list", expiresAt: Date.parse("2020-01-31T12:00:00Z") });
  const expired = (await service.storage.links.create(organization.id, OPERATOR, fields)) as { id: string };
  const used = await create({ max_clicks: 1 });
  const usedByBots = await create({ max_clicks: 1 });
  const plain = await create();
  await visit(used);
  await visit(usedByBots, "Googlebot/2.1");
  const page = await open();
  const markOf = ({ id }: { id: string }) =>
    page.html.querySelector(`[href$="${id}"]`)?.closest("tr")?.querySelector(".badge.warn")?.text;
  t.deepEqual([expired, used, usedByBots, plain].map(markOf), [
    "expired",
    "limit reached",
    "limit reached, 1 from bots",
    undefined,
  ]);
  t.deepEqual(textsOn(page, "#archived option"), ["Not archived", "Archived", "All"]);
});

const shownIn = (page: Page) => textsOn(page, "a.short").map((text) => text.split("/").at(-1) ?? "");
const positionOn = (page: Page) => page.html.querySelector(".pages .soft")?.text;

test("a list says which of how many links a page has, also of a filtered one, and after links were created", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  for (let number = 0; number < 7; number++) await create({ tags: number === 0 ? [] : ["news"] });
  t.is(positionOn(await open()), "7 links");
  for (const [filter, total] of Object.entries({
    "archived=all": 7,
    "tag=news": 6,
    "search=EXAMPLE&sort=-clicks": 7,
  })) {
    const first = await open(`?limit=3&${filter}`);
    t.is(positionOn(first), `1–3 of ${total} links`, filter);
    const second = await follow(browser, first, "Next");
    t.is(positionOn(second), `4–6 of ${total} links`);
    t.is(positionOn(await follow(browser, second, "Previous")), `1–3 of ${total} links`);
  }
  t.is(positionOn(await open("?tag=news&limit=6")), "6 links");
  const first = await open("?limit=4");
  await create();
  t.is(positionOn(await follow(browser, first, "Next")), "6–8 of 8 links");
});

test("links are filtered by text, tag and archived state, and a filter that can't be is named", async (t) => {
  const { create, open, member, path } = await linksInBrowser(service);
  const { slug: spring } = await create({ title: "Spring sale", tags: ["mail"] });
  const { slug: autumn } = await create({ title: "Autumn sale" });
  const { slug: winter, id } = await create({ title: "Snow", tags: ["mail"] });
  await member.api.send("PATCH", `${path}/${id}`, { json: { archived: true } });
  t.deepEqual(shownIn(await open("?search=&tag=&archived=false")), [autumn, spring]);
  t.deepEqual(shownIn(await open("?archived=true")), [winter]);
  const filtered = await open("?search=SALE&tag=mail&archived=all");
  t.deepEqual(shownIn(filtered), [spring]);
  t.is(typedIn(filtered, "search"), "SALE");
  t.is(typedIn(filtered, "archived"), "all");
  for (const [query, field] of [
    ["?cursor=invalid", "cursor"],
    ["?archived=perhaps", "archived"],
    ["?order=asc", "order"],
  ] as const) {
    const page = await open(query);
    t.is(page.status, 422);
    const alert = alertOn(page);
    t.true(alert.includes(field) || page.html.querySelector(`#${field}-error`) !== null, alert);
    t.deepEqual(shownIn(page), [autumn, spring]);
  }
});
