import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { LINK_DEFAULTS } from "../../../resources/links/links.ts";
import type { LinkBody } from "../../harness/api.ts";
import { linksInBrowser, typedIn } from "../../harness/pages.ts";
import type { Page } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const follow = (link: LinkBody) => fetch(link.short_url, { redirect: "manual" });

test("in the browser a link is made by its address alone, and shown", async (t) => {
  const { person, path, list, open } = await linksInBrowser(service);
  const empty = await open();
  t.regex(empty.text, /No links yet/);
  const made = await person.press(empty, "Create link", { url: "https://example.com/a?b=1&c=<d>" });
  const [link] = await list();
  if (!link) return t.fail();
  t.is(made.url, `${service.url}${path}/${link.id}?done=link-created`);
  t.is(made.html.querySelector(".copyable code")?.text, link.short_url);
  t.is(made.html.querySelector("[data-copy]")?.attributes["data-copy"], link.short_url);
  t.is(made.html.querySelector('a[rel="noreferrer"]')?.attributes.href, link.url);
  t.false(made.text.includes("<d>"));
  const listed = await open();
  t.is(listed.html.querySelector("td a")?.attributes.href, `${path}/${link.id}`);
});

test("a link is archived and put to use again", async (t) => {
  const { person, create, open } = await linksInBrowser(service);
  const link = await create();
  const archived = await person.press(await open(`/${link.id}`), "Archive");
  t.regex(archived.text, /The link was archived/);
  t.is((await follow(link)).status, 410);
  t.false((await open()).text.includes(link.slug));
  t.true((await open("?archived=true")).text.includes(link.slug));
  t.true((await open("?archived=all")).text.includes(link.slug));
  const restored = await person.press(archived, "Put to use again");
  t.regex(restored.text, /The link leads there again/);
  t.is((await follow(link)).status, 302);
});

test("a link is deleted after a page that says what it ends", async (t) => {
  const { person, path, create, open, list } = await linksInBrowser(service);
  const link = await create();
  const asked = await open(`/${link.id}/delete`);
  t.regex(asked.text, /cannot be undone/);
  t.is((await list()).length, 1);
  const deleted = await person.press(asked, "Delete link");
  t.is(deleted.url, `${service.url}${path}?done=link-deleted`);
  t.is((await follow(link)).status, 410);
  t.is((await open(`/${link.id}`)).status, 404);
});

test("whoever hesitates to delete a link archives it instead", async (t) => {
  const { person, create, open, look } = await linksInBrowser(service);
  const link = await create();
  await person.press(await open(`/${link.id}/delete`), "Archive instead");
  t.true((await look(link.id)).archived);
});

test("what somebody else changed meanwhile is not written over", async (t) => {
  const { person, owner, path, create, open, look } = await linksInBrowser(service);
  const link = await create();
  const form = await open(`/${link.id}/edit`);
  await owner.api.send("PATCH", `${path}/${link.id}`, { json: { title: "Theirs" } });
  const refused = await person.press(form, "Save link", { title: "Mine" });
  t.is(refused.status, 412);
  t.regex(refused.html.querySelector("[role=alert]")?.text ?? "", /changed meanwhile/);
  t.is(typedIn(refused, "title"), "Mine");
  t.is((await look(link.id)).title, "Theirs");
  await person.press(refused, "Save link");
  t.is((await look(link.id)).title, "Mine");
});

test("a link that is over keeps its end when something else is changed", async (t) => {
  const { person, organization, open, look } = await linksInBrowser(service);
  const { id } = (await service.storage.links.create(
    organization.id,
    { actor: "operator" },
    {
      ...LINK_DEFAULTS,
      url: "https://example.com/",
      slug: "over",
      expiresAt: Date.parse("2020-01-31T12:00:00Z"),
    },
  )) as { id: string };
  const page = await open(`/${id}`);
  t.regex(page.text, /expired/);
  await person.press(await open(`/${id}/edit`), "Save link", { title: "Over" });
  t.like(await look(id), { title: "Over", expires_at: "2020-01-31T12:00:00.000Z" });
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

test("links are found by text, tag and whether they are archived", async (t) => {
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
    if (expected.length === 0) t.regex(page.text, /No link matches/);
  }
  const asked = await open("?search=sale&archived=all");
  t.is(typedIn(asked, "search"), "sale");
  t.is(typedIn(asked, "archived"), "all");
});

test("many links are shown page by page, with the filter", async (t) => {
  const { create, open, person } = await linksInBrowser(service);
  for (let count = 0; count < 30; count++) await create({ tags: count % 30 ? ["many"] : [] });
  const first = await open("?tag=many&archived=all");
  t.is(shownIn(first).length, 25);
  const second = await person.open(new URL(linkTo(first, "Next page"), first.url).href);
  t.is(shownIn(second).length, 4);
  t.is(new Set([...shownIn(first), ...shownIn(second)]).size, 29);
  const back = await person.open(new URL(linkTo(second, "First page"), second.url).href);
  t.deepEqual(shownIn(back), shownIn(first));
});

const WRONG_QUERIES = ["?cursor=made-up", "?archived=perhaps", `?search=${"a".repeat(256)}`, "?sort=clicks"];

for (const query of WRONG_QUERIES) {
  test(`a list that is asked for with ${query.slice(0, 20)} says what is wrong, and shows the links`, async (t) => {
    const { create, open } = await linksInBrowser(service);
    const { slug } = await create();
    const page = await open(query);
    t.is(page.status, 422);
    t.truthy(page.html.querySelector("[role=alert]"));
    t.deepEqual(shownIn(page), [slug]);
  });
}

test("sec 119: no form of a link does anything without its token", async (t) => {
  const { person, create, path, look, list } = await linksInBrowser(service);
  const link = await create();
  for (const [address, fields] of [
    ["", { url: "https://example.com/forged" }],
    [`/${link.id}`, { archived: "true" }],
    [`/${link.id}/delete`, {}],
  ] as const) {
    const body = new URLSearchParams({ ...fields, csrf: "a".repeat(43) });
    const headers = { origin: service.url };
    const refused = await person.open(service.url + path + address, { method: "POST", body, headers });
    t.is(refused.status, 403, address);
  }
  t.deepEqual(await look(link.id), link);
  t.is((await list()).length, 1);
});

test("what a link is called does nothing to the page", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const title = `"><script>alert(1)</script>`;
  const link = await create({ title, tags: [`<img src=x>`], metadata: { "<b>": "<i>" } });
  for (const address of ["", `/${link.id}`, `/${link.id}/edit`, `/${link.id}/delete`]) {
    const page = await open(address);
    t.is(page.html.querySelectorAll("main script, main img:not([src$='qr.svg']), b, i").length, 0, address);
  }
});

const shownIn = ({ html }: Page) =>
  html.querySelectorAll('td[data-head="Short link"] a').map(({ text }) => text.split("/").at(-1) as string);

function linkTo({ html }: Page, text: string): string {
  const found = html.querySelectorAll("a").find((link: HTMLElement) => link.text === text);
  return found?.attributes.href?.replaceAll("&amp;", "&") ?? "no such link";
}
