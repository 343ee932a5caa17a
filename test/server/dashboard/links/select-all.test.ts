import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../../adapters/database/index.ts";
import type { LinkBody } from "../../../harness/clients/api.ts";
import { linksInBrowser } from "../../../harness/clients/pages.ts";
import type { Filled, Page } from "../../../harness/clients/test-browser.ts";
import { storeManyLinks } from "../../../harness/database/many-links.ts";
import { createTestDatabase } from "../../../harness/database/test-database.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const created = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: created.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
test.after.always(async () => {
  await service.close();
  await created.drop();
});

const noticeOf = (page: Page) => page.html.querySelector("[role=status] span")?.text;
const errorOf = (page: Page) => page.html.querySelector("[role=alert]")?.text.trim();
const headingOf = (page: Page) => page.html.querySelector("h1")?.text;
const othersOn = (page: Page) => page.html.querySelector("[data-others]")?.text.trim();

/** Returns the links of a new organization in a browser: six of eight have a tag. */
async function openTagged() {
  const team = await linksInBrowser(service);
  const links: LinkBody[] = [];
  for (let number = 0; number < 8; number++)
    links.push(await team.create({ tags: number < 6 ? ["news"] : [] }));
  const tagged = links.slice(0, 6);
  return {
    ...team,
    links,
    tagged,
    others: links.slice(6),
    lookAll: (ones: LinkBody[]) => Promise.all(ones.map(({ id }) => team.look(id))),
    /** Presses a button of the list with its first link selected, and with all that match. */
    pressForAll: (page: Page, button: string, fields: Filled = {}) =>
      team.browser.press(page, button, { ids: tagged[5]?.id ?? "", all: "true", ...fields }),
  };
}

test("a list with several pages offers to select all links that match", async (t) => {
  const { open } = await openTagged();
  t.is(othersOn(await open("?tag=news&limit=2")), "Select all 6 links");
  t.is(othersOn(await open("?archived=all&limit=2")), "Select all 8 links");
  t.is(othersOn(await open("?tag=news&limit=6")), undefined);
});

test("all links that match are archived, restored and tagged, and no others", async (t) => {
  const { open, pressForAll, lookAll, tagged, others, organization, path, browser } = await openTagged();
  const list = await open("?tag=news&limit=2");
  const second = list.html.querySelector(".pages [rel=next]")?.attributes.href ?? "";
  const archived = await pressForAll(await browser.open(service.url + second), "Archive");
  t.is(noticeOf(archived), "6 links archived.");
  t.regex(archived.url, new RegExp(`^${service.url}${path}\\?tag=news&limit=2&done=`), "the first page");
  t.true((await lookAll(tagged)).every(({ archived }) => archived));
  t.deepEqual(await lookAll(others), others);

  const all = await open("?archived=all&tag=news&limit=2");
  t.is(noticeOf(await pressForAll(all, "Add", { tag: "new" })), "Tag added to 6 links.");
  t.is(noticeOf(await pressForAll(all, "Remove", { tag: "news" })), "Tag removed from 6 links.");
  t.true((await lookAll(tagged)).every(({ tags }) => tags.join() === "new"));
  const restored = await pressForAll(await open("?archived=true&limit=2"), "Restore");
  t.is(noticeOf(restored), "6 links restored.");
  t.deepEqual(await lookAll(others), others);
  const events = await service.storage.audit.list(organization.id, { types: ["link.updated"] }, 100);
  t.is(events.length, 24);
});

test("a page asks for the tag of all links that match", async (t) => {
  const { open, pressForAll, browser, lookAll, tagged, others } = await openTagged();
  const page = await pressForAll(await open("?tag=news&limit=2"), "Add", { tag: "" });
  t.is(headingOf(page), "Add a tag to 6 links");
  const again = await browser.press(page, "Add tag", { tag: "x".repeat(51) });
  t.is(headingOf(again), "Add a tag to 6 links");
  t.is(noticeOf(await browser.press(again, "Add tag", { tag: "new" })), "Tag added to 6 links.");
  t.true((await lookAll(tagged)).every(({ tags }) => tags.includes("new")));
  t.deepEqual(await lookAll(others), others);
});

test("all links that match are exported", async (t) => {
  const { open, pressForAll, tagged } = await openTagged();
  const { headers, text } = await pressForAll(await open("?tag=news&limit=2"), "Export");
  t.regex(headers.get("content-type") ?? "", /^text\/csv/);
  const [, ...rows] = text.trim().split("\n");
  t.deepEqual(
    rows.map((row) => row.split(",")[0]),
    tagged.map(({ id }) => id).toReversed(),
  );
});

test("a deletion of all names their number, and spares links that match only later", async (t) => {
  const { open, pressForAll, browser, create, list, member, path, others } = await openTagged();
  const page = await open("?tag=news&limit=2");
  const later = await create({ tags: ["news"] });
  const question = await pressForAll(page, "Delete");
  t.is(headingOf(question), "Delete 6 links?");
  t.false(question.text.includes(`/${later.slug}`));
  const [tagged, untagged] = others as [LinkBody, LinkBody];
  await member.api.send("PATCH", `${path}/${tagged.id}`, { json: { tags: ["news"] } });
  t.is(noticeOf(await browser.press(question, "Delete 6 links")), "6 links deleted.");
  const left = (await list()).map(({ id }) => id);
  t.deepEqual(left, [later.id, untagged.id, tagged.id]);
});

test("links that were created after the list was opened are not archived with it", async (t) => {
  const { open, pressForAll, create, look } = await openTagged();
  const page = await open("?tag=news&limit=2");
  const later = await create({ tags: ["news"] });
  t.is(noticeOf(await pressForAll(page, "Archive")), "6 links archived.");
  t.false((await look(later.id)).archived);
});

const INVALID: [name: string, fields: Filled, error: string][] = [
  ["no time", { shown_at: "" }, "shown_at must be a time in milliseconds."],
  ["a time before 1970", { shown_at: "-1" }, "shown_at must be a time in milliseconds."],
  ["a list before all links", { shown_at: "0" }, "No link matches anymore."],
  ["no archived state", { return_to: "?archived=perhaps" }, "archived must be true or false."],
  [
    "a long tag",
    { return_to: `?tag=${"x".repeat(51)}` },
    "tag must be 1 to 50 characters without control characters.",
  ],
];
for (const [name, fields, error] of INVALID) {
  test(`a selection of all with ${name} is rejected, and changes nothing`, async (t) => {
    const { open, pressForAll, lookAll, links } = await openTagged();
    const list = await open("?tag=news&limit=2");
    for (const button of ["Archive", "Delete"]) {
      const page = await pressForAll(list, button, fields);
      t.is(page.status, 422);
      t.is(errorOf(page), error);
    }
    t.deepEqual(await lookAll(links), links);
  });
}

test("up to 1,000 links are changed together, after a question that says how many", async (t) => {
  const { organization, open, browser, list } = await linksInBrowser(service);
  const database = openDatabase(created.url);
  await storeManyLinks(database.knex, organization.id, 1001, (number) => ({
    tags: number === 0 ? [] : ["thousand"],
  }));
  await database.close();

  const whole = await open();
  t.is(othersOn(whole), "1,000+ links match. Narrow the filter to select them all.");
  for (const button of ["Archive", "Delete"]) {
    const refused = await browser.press(whole, button, { all: "true" });
    t.is(refused.status, 422);
    t.is(
      errorOf(refused),
      "More than 1,000 links match. Narrow the filter, and try again. No link was changed.",
    );
  }
  t.is((await list()).length, 25);

  const filtered = await open("?tag=thousand");
  t.is(othersOn(filtered), "Select all 1,000 links");
  const question = await browser.press(filtered, "Archive", { all: "true" });
  t.is(headingOf(question), "Archive 1,000 links?");
  t.regex(question.text, /And 900 links more\./);
  const archived = await browser.press(question, "Archive 1,000 links");
  t.is(noticeOf(archived), "1,000 links archived.");
  t.is(archived.html.querySelector("[role=status] form"), null);
  t.is((await list()).length, 25, "without a filter, programs get archived links");
  t.is(archived.html.querySelectorAll("tbody tr").length, 0);
  t.is((await open()).html.querySelectorAll("tbody tr").length, 1);
});
