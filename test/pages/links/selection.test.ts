import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { alertOn, follow, isMarked, linksInBrowser, typedIn } from "../../harness/clients/pages.ts";
import type { Filled, Page } from "../../harness/clients/test-browser.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

export const databases = "all";

const { service, knex } = await startServiceWithDatabase();

type Results = { results: { id: string; status: number; error?: { code: string; detail: string } }[] };

/** Returns the links of a new organization in a browser, with requests to change several. */
async function openLinks() {
  const team = await linksInBrowser(service);
  const { member, path, browser, open, create, look, organization } = team;
  return {
    ...team,
    createMany: async (count: number, fields: object = {}) => {
      const created: LinkBody[] = [];
      for (let index = 0; index < count; index++) created.push(await create(fields));
      return created as [LinkBody, LinkBody, LinkBody, ...LinkBody[]];
    },
    lookAll: (ones: LinkBody[]) => Promise.all(ones.map(({ id }) => look(id))),
    change: (json: object) => member.api.send<Results>("POST", `${path}/selection`, { json }),
    /** Submits the selection as the list's form does. */
    async select(selected: LinkBody[], fields: Record<string, string>): Promise<Page> {
      const csrf = typedIn(await open("/new"), "csrf") ?? "";
      const body = new URLSearchParams({ csrf, ...fields });
      for (const { id } of selected) body.append("ids", id);
      const headers = { origin: service.url };
      return browser.open(`${service.url}${path}/selection`, { method: "POST", body, headers });
    },
    audited: async (type: string) =>
      (await service.storage.audit.list(organization.id, { types: [type as "link.updated"] }, 100)).length,
  };
}

const noticeOf = (page: Page) => page.html.querySelector("[role=status] span")?.text;
const headingOf = (page: Page) => page.html.querySelector("h1")?.text;

test("a form archives the selected links, returns to the list with its filter, and undoes what it changed", async (t) => {
  const { createMany, select, lookAll, audited, browser, member, path } = await openLinks();
  const links = await createMany(3);
  const [first, second, third] = links;
  await member.api.send("PATCH", `${path}/${third.id}`, { json: { archived: true } });
  const return_to = "?search=example&archived=all&sort=-clicks&done=link-saved";
  const archived = await select(links, { action: "archive", return_to, tag: "" });
  const list = `${service.url}${path}?search=example&archived=all&sort=-clicks`;
  const query = `&done=links-archived-3&undo=${first.id}.${second.id}`;
  t.is(archived.url.replace(/&signature=[\w-]{43}$/, ""), list + query);
  t.is(noticeOf(archived), "3 links archived.");
  t.is(await audited("link.updated"), 3, "once each");
  t.is((await fetch(first.short_url, { redirect: "manual" })).status, 410);
  const undone = await browser.press(archived, "Undo");
  t.is(noticeOf(undone), "2 links restored.");
  t.true(undone.url.startsWith(`${list}&done=links-restored-2&`));
  t.is(undone.html.querySelector("[role=status] button"), null, "no undo of an undo");
  t.like(await lookAll(links), [{ archived: false }, { archived: false }, { archived: true }]);
  t.is((await fetch(first.short_url, { redirect: "manual" })).status, 302);
});

test("the menu of a row archives and restores its link only, without JavaScript", async (t) => {
  const { createMany, lookAll, browser, open } = await openLinks();
  const links = await createMany(2);
  const press = (page: Page, text: string) => {
    const buttons = page.html.querySelectorAll("td .sheet button").filter((one) => one.text === text);
    return browser.click(page, buttons.at(-1) as (typeof buttons)[0]);
  };
  const archived = await press(await open("?search=example"), "Archive");
  t.regex(archived.url, /\?search=example&done=links-archived-1&/);
  t.like(await lookAll(links), [{ archived: true }, { archived: false }]);
  await press(await open("?archived=all"), "Restore");
  t.like(await lookAll(links), [{ archived: false }, { archived: false }]);
});

test("without a tag, a page asks for it, and shows it again if it is invalid", async (t) => {
  const { createMany, select, look, browser } = await openLinks();
  const links = await createMany(25);
  const page = await select(links, { action: "add-tag", tag: "", return_to: "?archived=all" });
  t.is(headingOf(page), "Add a tag to 25 links");
  t.is(alertOn(page), "");
  const again = await browser.press(page, "Add tag", { tag: "x".repeat(51) });
  t.is(again.status, 422);
  isMarked(t, again, "tag", /1 to 50 characters/);
  t.is(typedIn(again, "tag"), "x".repeat(51));
  const done = await browser.press(again, "Add tag", { tag: "new" });
  t.is(noticeOf(done), "Tag added to 25 links.");
  t.is(new URL(done.url).searchParams.get("archived"), "all");
  t.deepEqual((await look(links[0].id)).tags, ["new"]);
});

test("a page says which links were not changed, and why", async (t) => {
  const { createMany, select } = await openLinks();
  const [plain, disabled, gone] = await createMany(3);
  await service.storage.disabledLinks.disable(disabled.id, "phishing", OPERATOR);
  const selected = [plain, disabled, { ...gone, id: "lnk_gone" }];
  const page = await select(selected, { action: "archive", return_to: "?tag=x" });
  t.is(page.status, 200);
  t.is(alertOn(page), "2 links could not be changed.");
  const text = page.html.querySelector("main")?.text ?? "";
  const reason = "The operator of this service disabled the link";
  for (const shown of ["1 link changed.", `/${disabled.slug}`, reason]) t.true(text.includes(shown), shown);
  t.true(text.includes("lnk_gone") && !text.includes(`/${plain.slug}`));
  const back = page.html.querySelectorAll("main a").at(-1)?.attributes.href;
  t.true(back?.endsWith("/links?tag=x"));
});

test("a change that isn't one, or without a selection, is rejected, and changes nothing", async (t) => {
  const { create, change, look, select } = await openLinks();
  const link = await create();
  const ids = [link.id];
  const invalid: [json: object, code: string, fields: string[]][] = [
    [{ action: "archive" }, "invalid_ids", ["ids"]],
    [{ ids: [], action: "export" }, "invalid_ids", ["ids"]],
    [{ ids: [1], action: "archive" }, "invalid_ids", ["ids.0"]],
    [{ ids: Array.from({ length: 1001 }, () => link.id), action: "archive" }, "invalid_request", ["ids"]],
    [{ ids, action: "disable" }, "invalid_action", ["action"]],
    [{ ids, action: "remove-tag", tag: "a\u001fb" }, "invalid_tag", ["tag"]],
    [{ ids, action: "archive", url: "https://example.com/" }, "unknown_field", ["url"]],
  ];
  for (const [json, code, fields] of invalid) isProblem(t, await change(json), { status: 422, code, fields });
  const page = await select([], { action: "delete", return_to: "?search=x" });
  t.is(page.status, 422);
  t.is(alertOn(page), "Select 1 to 1,000 links.");
  t.true(page.html.querySelector("main a")?.attributes.href?.endsWith("/links?search=x"));
  t.deepEqual(await look(link.id), link);
});

test("the selected links are exported as CSV, and no others", async (t) => {
  const { createMany, select } = await openLinks();
  const [first, , third] = await createMany(3, { tags: ["a"] });
  const { headers, text } = await select([first, third], { action: "export" });
  t.regex(headers.get("content-type") ?? "", /^text\/csv/);
  t.regex(
    headers.get("content-disposition") ?? "",
    /^attachment; filename="[a-z\d-]+-links-[\d-]{10}\.csv"$/,
  );
  const [head = "", ...rows] = text.trim().split("\n");
  t.regex(head, /\bid,url,short_url,domain,slug\b/);
  t.is(rows.map((row) => row.split(",")[0]).join(), `${third.id},${first.id}`);
});

const FORGERIES: Record<string, (url: URL, other: LinkBody) => void> = {
  "without a signature": (url) => url.searchParams.delete("signature"),
  "of other links": (url, { id }) => url.searchParams.set("undo", id),
  "of another change": (url) => url.searchParams.set("done", "links-archived-1"),
  "with another signature": (url) => url.searchParams.set("signature", "A".repeat(43)),
  "with a list of signatures": (url) => url.searchParams.append("signature", "A"),
};

test("only an address that this session got shows a confirmation, and a button if something changed", async (t) => {
  const { createMany, select, browser, path } = await openLinks();
  const [own, other] = await createMany(2);
  const isShown = (page: Page) => page.html.querySelector("[data-toast], [role=status] button") !== null;
  await select([own], { action: "archive" });
  const restored = await select([own], { action: "restore" });
  t.is(noticeOf(restored), "1 link restored.");
  for (const [what, forge] of Object.entries(FORGERIES)) {
    const url = new URL(restored.url);
    forge(url, other);
    t.false(isShown(await browser.open(url.href)), what);
  }
  const { browser: foreign, path: elsewhere } = await openLinks();
  t.false(isShown(await foreign.open(`${service.url}${elsewhere}${new URL(restored.url).search}`)));
  for (const fields of [{ action: "restore" }, { action: "add-tag", tag: "new" }])
    t.is((await select([own], fields)).html.querySelector("[role=status] button"), null);

  for (const return_to of [
    ...["https://evil.example/", "//evil.example/?search=x", "/\\evil.example"],
    ...["?search=x\r\nSet-Cookie: a=b", "?next=https://evil.example", "@evil.example"],
  ]) {
    const { url } = await select([own], { action: "archive", return_to });
    t.true(url.startsWith(`${service.url}${path}?`), return_to);
    const others = /[?&](?!(search|done|undo|signature)=)/;
    t.notRegex(url, others, return_to);
  }
});

const othersOn = (page: Page) => page.html.querySelector("[data-others]")?.text.trim();

/** Returns the links of a new organization in a browser: six of eight have a tag. */
async function openTagged() {
  const team = await openLinks();
  const tagged = await team.createMany(6, { tags: ["news"] });
  const others = await team.createMany(2);
  return {
    ...team,
    tagged,
    others,
    /** Presses a button of the list with its first link selected, and with all that match. */
    pressForAll: (page: Page, button: string, fields: Filled = {}) =>
      team.browser.press(page, button, { ids: tagged[5]?.id ?? "", all: "true", ...fields }),
  };
}

test("all links that match are exported, archived, restored and tagged, and no others", async (t) => {
  const { open, pressForAll, lookAll, tagged, others, audited, path, browser, change } = await openTagged();
  const second = await follow(browser, await open("?tag=news&limit=2"), "Next");
  const ids = tagged.map(({ id }) => id);
  const { text } = await pressForAll(second, "Export");
  t.deepEqual(text.match(/^lnk_\w+/gm), ids.toReversed());
  const archived = await pressForAll(second, "Archive");
  t.is(noticeOf(archived), "6 links archived.");
  t.regex(archived.url, new RegExp(`^${service.url}${path}\\?tag=news&limit=2&done=`), "the first page");
  t.true((await lookAll(tagged)).every(({ archived }) => archived));
  t.deepEqual(await lookAll(others), others);

  const all = await open("?archived=all&tag=news&limit=2");
  t.is(noticeOf(await pressForAll(all, "Add tag", { tag: "new" })), "Tag added to 6 links.");
  t.is(noticeOf(await pressForAll(all, "Remove tag", { tag: "news" })), "Tag removed from 6 links.");
  t.true((await lookAll(tagged)).every(({ tags }) => tags.join() === "new"));
  const restored = await pressForAll(await open("?archived=true&limit=2"), "Restore");
  t.is(noticeOf(restored), "6 links restored.");
  t.deepEqual(await lookAll(others), others);
  t.is(await audited("link.updated"), 24);
  await Promise.all(["x", "y"].map((tag) => change({ ids, action: "add-tag", tag })));
  for (const { tags } of await lookAll(tagged)) t.deepEqual(tags.toSorted(), ["new", "x", "y"]);
});

test("a deletion of all names their number, offers to archive them instead, and spares links that match only later", async (t) => {
  const { open, pressForAll, browser, create, list, member, path, others, tagged, audited } =
    await openTagged();
  const page = await open("?tag=news&limit=2");
  const later = await create({ tags: ["news"] });
  const question = await pressForAll(page, "Delete");
  t.is(headingOf(question), "Delete 6 links?");
  const named = question.html.querySelector("main")?.text ?? "";
  for (const one of [...tagged, later]) t.is(named.includes(`/${one.slug}`), one !== later, one.slug);
  t.is((await list()).length, 9, "it asks first");
  t.is(noticeOf(await browser.press(question, "Archive instead")), "6 links archived.");
  const [added, untagged] = others;
  await member.api.send("PATCH", `${path}/${added.id}`, { json: { tags: ["news"] } });
  t.is(noticeOf(await browser.press(question, "Delete 6 links")), "6 links deleted.");
  const left = (await list()).map(({ id }) => id);
  t.deepEqual(left, [later.id, untagged.id, added.id]);
  t.is(await audited("link.deleted"), 6);
});

test("a selection of all without a time or with a wrong filter is rejected, and changes nothing", async (t) => {
  const { open, pressForAll, lookAll, tagged, others } = await openTagged();
  const links = [...tagged, ...others];
  const list = await open("?tag=news&limit=2");
  for (const [fields, error] of [
    [{ shown_at: "" }, "shown_at must be a time in milliseconds."],
    [{ shown_at: "-1" }, "shown_at must be a time in milliseconds."],
    [{ shown_at: "0" }, "No link matches anymore."],
    [{ return_to: "?archived=perhaps" }, "archived must be true or false."],
  ] as [Filled, string][]) {
    for (const button of ["Archive", "Delete"]) {
      const page = await pressForAll(list, button, fields);
      t.is(page.status, 422);
      t.is(alertOn(page), error);
    }
  }
  t.deepEqual(await lookAll(links), links);
});

test("up to 1,000 links are changed together, after a question that says how many", async (t) => {
  const { organization, open, browser, list } = await linksInBrowser(service);
  await storeManyLinks(knex, organization.id, 1001, (number) => ({ tags: number === 0 ? [] : ["thousand"] }));

  const whole = await open();
  t.is(othersOn(whole), "1,000+ links match. Narrow the filter to select them all.");
  for (const button of ["Archive", "Delete"]) {
    const refused = await browser.press(whole, button, { all: "true" });
    t.is(refused.status, 422);
    t.regex(alertOn(refused), /^More than 1,000 links match\. Narrow .* No link was changed\.$/);
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

test("a page asks what to change in the selected links, and changes only what was entered", async (t) => {
  const { createMany, select, lookAll, browser } = await openLinks();
  const links = await createMany(3, {
    url: "https://example.com/spring",
    expires_at: "2098-01-31T12:00:00Z",
  });
  const page = await select(links, { action: "change", tag: "", return_to: "?archived=all" });
  t.is(headingOf(page), "Change 3 links");
  t.is(alertOn(page), "");
  const changed = await browser.press(page, "Change links", {
    find: "/spring",
    with: "/summer",
    source: "mail & more",
    term: "sale",
  });
  t.is(noticeOf(changed), "3 links changed.");
  t.is(new URL(changed.url).searchParams.get("archived"), "all");
  const url = "https://example.com/summer?utm_source=mail%20%26%20more&utm_term=sale";
  const kept = { url, expires_at: "2098-01-31T12:00:00.000Z" };
  t.like(await lookAll(links), [kept, kept, kept]);
  const again = await select(links, { action: "change" });
  const removal = { removes_expiry: "true", removes_utm: "true", medium: "email" };
  await browser.press(again, "Change links", removal);
  const removed = { url: "https://example.com/summer?utm_medium=email", expires_at: null };
  t.like(await lookAll(links), [removed, removed, removed]);
});

test("changes that are missing or invalid are asked for again, with what was entered", async (t) => {
  const { createMany, select, lookAll, browser } = await openLinks();
  const links = await createMany(2, { url: "https://example.com/spring" });
  const page = await select(links, { action: "change" });
  const empty = await browser.press(page, "Change links", {});
  t.is(empty.status, 422);
  t.is(empty.html.querySelector("form.panel .error")?.text, "Enter at least one change.");
  const invalid = await browser.press(empty, "Change links", { with: "/summer", source: "mail" });
  t.is(invalid.status, 422);
  isMarked(t, invalid, "find", /1 to 2048 characters/);
  t.deepEqual([typedIn(invalid, "with"), typedIn(invalid, "source")], ["/summer", "mail"]);
  const failed = await browser.press(invalid, "Change links", { find: "https:", with: "ftp:" });
  t.is(alertOn(failed), "2 links could not be changed.");
  t.regex(failed.html.querySelector("table")?.text ?? "", /must be an http or https URL/);
  for (const { url } of await lookAll(links)) t.is(url, "https://example.com/spring");
});
