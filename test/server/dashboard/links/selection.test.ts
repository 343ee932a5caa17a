import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import type { LinkBody } from "../../../harness/clients/api.ts";
import { isProblem } from "../../../harness/clients/api.ts";
import { linksInBrowser, typedIn } from "../../../harness/clients/pages.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

type Results = { results: { id: string; status: number; error?: { code: string; detail: string } }[] };

/** Returns the links of a new organization in a browser, with requests to change several. */
async function openLinks() {
  const links = await linksInBrowser(service);
  const { member, path, browser, open, create, organization } = links;
  return {
    ...links,
    createMany: async (count: number, fields: object = {}) => {
      const created: LinkBody[] = [];
      for (let index = 0; index < count; index++) created.push(await create(fields));
      return created;
    },
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
    usage: () => service.storage.links.usage(organization.id),
  };
}

const noticeOf = (page: Page) => page.html.querySelector("[role=status] span")?.text;
const withoutSignature = ({ url }: Page) => url.replace(/&signature=[\w-]{43}$/, "");
const errorOf = (page: Page) => page.html.querySelector("[role=alert]")?.text.trim();
const inOrder = (links: LinkBody[]) => links.map(({ id }) => ({ id, status: 200 }));

test("a form archives and restores the selected links, and returns to the list with its filter", async (t) => {
  const { createMany, select, look, audited, path } = await openLinks();
  const [first, second, other] = (await createMany(3)) as [LinkBody, LinkBody, LinkBody];
  const archived = await select([first, second], {
    action: "archive",
    return_to: "?search=example&archived=all&done=link-saved",
    tag: "",
  });
  const undo = `${first.id}.${second.id}`;
  t.is(
    withoutSignature(archived),
    `${service.url}${path}?search=example&archived=all&done=links-archived-2&undo=${undo}`,
  );
  t.is(noticeOf(archived), "2 links archived.");
  t.deepEqual(await Promise.all([first, second, other].map(async ({ id }) => (await look(id)).archived)), [
    true,
    true,
    false,
  ]);
  t.is(await audited("link.updated"), 2);
  t.is((await fetch(first.short_url, { redirect: "manual" })).status, 410);
  t.is(noticeOf(await select([first], { action: "restore" })), "1 link restored.");
  t.is((await fetch(first.short_url, { redirect: "manual" })).status, 302);
});

test("the confirmation undoes exactly what was archived or restored", async (t) => {
  const { createMany, select, look, browser, member, path, audited } = await openLinks();
  const links = (await createMany(3)) as [LinkBody, LinkBody, LinkBody];
  const [first, second, third] = links;
  await member.api.send("PATCH", `${path}/${third.id}`, { json: { archived: true } });
  const states = () => Promise.all(links.map(async ({ id }) => (await look(id)).archived));
  const archived = await select([...links], { action: "archive", return_to: "?archived=all&sort=-clicks" });
  t.is(noticeOf(archived), "3 links archived.");
  t.deepEqual(await states(), [true, true, true]);
  const undone = await browser.press(archived, "Undo");
  t.is(noticeOf(undone), "2 links restored.");
  t.is(
    withoutSignature(undone),
    `${service.url}${path}?archived=all&sort=-clicks&done=links-restored-2&undo=${first.id}.${second.id}`,
  );
  t.deepEqual(await states(), [false, false, true]);
  t.is(noticeOf(await browser.press(undone, "Undo")), "2 links archived.");
  t.deepEqual(await states(), [true, true, true]);
  t.is(await audited("link.updated"), 7);
});

test("a confirmation without a change, or of another one, has no button", async (t) => {
  const { createMany, select } = await openLinks();
  const links = await createMany(2);
  const buttonOn = (page: Page) => page.html.querySelector("[role=status] button");
  t.is(buttonOn(await select(links, { action: "restore" })), null);
  t.is(buttonOn(await select(links, { action: "add-tag", tag: "new" })), null);
});

test("links that were deleted meanwhile can't be restored, and the page says so", async (t) => {
  const { createMany, select, browser, change } = await openLinks();
  const [gone, kept] = (await createMany(2)) as [LinkBody, LinkBody];
  const archived = await select([gone, kept], { action: "archive" });
  await change({ ids: [gone.id], action: "delete" });
  const page = await browser.press(archived, "Undo");
  t.is(errorOf(page), "1 link could not be changed.");
  t.regex(page.text, /1 link changed\./);
});

const FORGERIES: Record<string, (url: URL, other: LinkBody) => void> = {
  "without a signature": (url) => url.searchParams.delete("signature"),
  "of other links": (url, { id }) => url.searchParams.set("undo", id),
  "of further links": (url, { id }) => url.searchParams.set("undo", `${url.searchParams.get("undo")}.${id}`),
  "of another change": (url) => url.searchParams.set("done", "links-archived-1"),
  "of another number": (url) => url.searchParams.set("done", "links-restored-9"),
  "of no links": (url) => url.searchParams.delete("undo"),
  "with another signature": (url) => url.searchParams.set("signature", "A".repeat(43)),
  "with a list of signatures": (url) => url.searchParams.append("signature", "A"),
};
for (const [what, forge] of Object.entries(FORGERIES))
  test(`an address ${what} shows no confirmation and no button`, async (t) => {
    const { createMany, select, browser } = await openLinks();
    const [own, other] = (await createMany(2)) as [LinkBody, LinkBody];
    await select([own], { action: "archive" });
    const restored = await select([own], { action: "restore" });
    t.is(noticeOf(restored), "1 link restored.");
    const url = new URL(restored.url);
    forge(url, other);
    const page = await browser.open(url.href);
    t.is(page.html.querySelector("[data-toast]"), null);
    t.false(page.html.querySelectorAll("button").some(({ text }) => text === "Undo"));
  });

test("the address of a confirmation shows nothing in the session of another user", async (t) => {
  const { createMany, select } = await openLinks();
  const { browser, path } = await openLinks();
  const archived = await select(await createMany(1), { action: "archive" });
  const page = await browser.open(`${service.url}${path}${new URL(archived.url).search}`);
  t.is(page.html.querySelector("[data-toast]"), null);
});

test("tags are added and removed once, and other tags are kept", async (t) => {
  const { createMany, select, look, change } = await openLinks();
  const links = [...(await createMany(2, { tags: ["a"] })), ...(await createMany(1, { tags: ["a", "new"] }))];
  const tagsOf = () => Promise.all(links.map(async ({ id }) => (await look(id)).tags));
  t.is(noticeOf(await select(links, { action: "add-tag", tag: "new" })), "Tag added to 3 links.");
  t.deepEqual(await tagsOf(), [
    ["a", "new"],
    ["a", "new"],
    ["a", "new"],
  ]);
  t.is(noticeOf(await select(links, { action: "remove-tag", tag: "a" })), "Tag removed from 3 links.");
  t.deepEqual(await tagsOf(), [["new"], ["new"], ["new"]]);
  const ids = links.map(({ id }) => id);
  await Promise.all(["x", "y", "z"].map((tag) => change({ ids, action: "add-tag", tag })));
  for (const tags of await tagsOf()) t.deepEqual(tags.toSorted(), ["new", "x", "y", "z"]);
});

test("without a tag, a page asks for it, and shows it again if it is invalid", async (t) => {
  const { createMany, select, look, browser } = await openLinks();
  const links = await createMany(25);
  const page = await select(links, { action: "add-tag", tag: "", return_to: "?archived=all" });
  t.is(page.html.querySelector("h1")?.text, "Add a tag to 25 links");
  t.is(errorOf(page), undefined);
  const again = await browser.press(page, "Add tag", { tag: "x".repeat(51) });
  t.is(again.status, 422);
  t.is(typedIn(again, "tag"), "x".repeat(51));
  t.regex(again.html.querySelector("#tag-error")?.text ?? "", /1 to 50 characters/);
  const done = await browser.press(again, "Add tag", { tag: "new" });
  t.is(noticeOf(done), "Tag added to 25 links.");
  t.is(new URL(done.url).searchParams.get("archived"), "all");
  t.deepEqual((await look(links[0]?.id ?? "")).tags, ["new"]);
});

test("a deletion asks first, and names the links", async (t) => {
  const { createMany, select, list, browser, usage, audited } = await openLinks();
  const links = await createMany(30);
  const kept = await createMany(1);
  const page = await select(links, { action: "delete" });
  t.is(page.html.querySelector("h1")?.text, "Delete 30 links?");
  const text = page.html.querySelector("main")?.text ?? "";
  for (const { slug } of links) t.true(text.includes(`/${slug}`), text);
  t.is((await list()).length, 25);
  t.is((await usage()).links, 31);
  const done = await browser.press(page, "Delete 30 links");
  t.is(noticeOf(done), "30 links deleted.");
  t.deepEqual(
    (await list()).map(({ id }) => id),
    kept.map(({ id }) => id),
  );
  t.is((await usage()).links, 1);
  t.is(await audited("link.deleted"), 30);
  t.is((await fetch(links[0]?.short_url ?? "", { redirect: "manual" })).status, 410);
});

test("the page of a deletion can archive the links instead", async (t) => {
  const { createMany, select, browser, look } = await openLinks();
  const [link] = (await createMany(1)) as [LinkBody];
  const page = await select([link], { action: "delete" });
  t.is(page.html.querySelector("h1")?.text, "Delete 1 link?");
  t.is(noticeOf(await browser.press(page, "Archive instead")), "1 link archived.");
  t.true((await look(link.id)).archived);
});

test("a program gets one result per link, each as a request of its own would have", async (t) => {
  const { createMany, change, stranger, other, organization, look } = await openLinks();
  const [plain, full, disabled] = [
    ...(await createMany(1)),
    ...(await createMany(1, { tags: Array.from({ length: 20 }, (_, number) => `tag ${number}`) })),
    ...(await createMany(1)),
  ] as [LinkBody, LinkBody, LinkBody];
  await service.storage.disabledLinks.disable(disabled.id, "phishing", OPERATOR);
  const theirs = (
    await stranger.api.send<LinkBody>("POST", `/dashboard/organizations/${other.id}/links`, {
      json: { url: "https://example.com/" },
    })
  ).body;
  const ids = [plain.id, full.id, disabled.id, theirs.id, "lnk_nothing", plain.id];
  const { status, body } = await change({ ids, action: "add-tag", tag: "new" });
  t.is(status, 200);
  t.deepEqual(
    body.results.map(({ id, status, error }) => [id, status, error?.code]),
    [
      [plain.id, 200, undefined],
      [full.id, 422, "invalid_tags"],
      [disabled.id, 409, "link_disabled"],
      [theirs.id, 404, "not_found"],
      ["lnk_nothing", 404, "not_found"],
    ],
  );
  t.deepEqual((await look(plain.id)).tags, ["new"]);
  t.is((await service.storage.links.find(other.id, theirs.id))?.version, 1);
  const removed = await change({ ids: [disabled.id, full.id], action: "delete" });
  t.deepEqual(removed.body.results, inOrder([disabled, full]));
  t.is((await service.storage.links.usage(organization.id)).links, 1);
});

test("a page says which links were not changed, and why", async (t) => {
  const { createMany, select } = await openLinks();
  const [plain, disabled, gone] = (await createMany(3)) as [LinkBody, LinkBody, LinkBody];
  await service.storage.disabledLinks.disable(disabled.id, "phishing", OPERATOR);
  await service.storage.links.remove(disabled.id, gone.id, OPERATOR);
  const page = await select([plain, disabled, { ...gone, id: "lnk_gone" }], {
    action: "archive",
    return_to: "?tag=x",
  });
  t.is(page.status, 200);
  t.is(errorOf(page), "2 links could not be changed.");
  const text = page.html.querySelector("main")?.text ?? "";
  t.true(text.includes("1 link changed."));
  t.true(
    text.includes(`/${disabled.slug}`) && text.includes("The operator of this service disabled the link"),
  );
  t.true(text.includes("lnk_gone") && !text.includes(`/${plain.slug}`));
  const back = page.html.querySelectorAll("main a").at(-1)?.attributes.href;
  t.true(back?.endsWith("/links?tag=x"));
});

test("a change that isn't one is rejected, and changes nothing", async (t) => {
  const { createMany, change, look } = await openLinks();
  const [link] = (await createMany(1)) as [LinkBody];
  const ids = [link.id];
  const invalid: [json: object, code: string, fields: string[]][] = [
    [{ action: "archive" }, "invalid_ids", ["ids"]],
    [{ ids: [], action: "archive" }, "invalid_ids", ["ids"]],
    [{ ids: link.id, action: "archive" }, "invalid_ids", ["ids"]],
    [{ ids: [1], action: "archive" }, "invalid_ids", ["ids.0"]],
    [{ ids: Array.from({ length: 1001 }, () => link.id), action: "archive" }, "invalid_request", ["ids"]],
    [{ ids }, "invalid_action", ["action"]],
    [{ ids, action: "disable" }, "invalid_action", ["action"]],
    [{ ids, action: "add-tag" }, "invalid_tag", ["tag"]],
    [{ ids, action: "add-tag", tag: "" }, "invalid_tag", ["tag"]],
    [{ ids, action: "remove-tag", tag: "a\u001fb" }, "invalid_tag", ["tag"]],
    [{ ids, action: "archive", url: "https://example.com/" }, "unknown_field", ["url"]],
  ];
  for (const [json, code, fields] of invalid) {
    isProblem(t, await change(json), { status: 422, code, fields });
  }
  t.deepEqual(await look(link.id), link);
});

test("a form without a selection leads back to the list", async (t) => {
  const { select, createMany, list } = await openLinks();
  const [link] = (await createMany(1)) as [LinkBody];
  for (const action of ["archive", "delete", "add-tag"]) {
    const page = await select([], { action, return_to: "?search=x" });
    t.is(page.status, 422);
    t.is(errorOf(page), "Select 1 to 1,000 links.");
    t.true(page.html.querySelector("main a")?.attributes.href?.endsWith("/links?search=x"));
  }
  t.deepEqual(await list(), [link]);
});

test("the selected links are exported as CSV, and no others", async (t) => {
  const { createMany, select, member, path } = await openLinks();
  const [first, , third] = (await createMany(3, { tags: ["a"] })) as [LinkBody, LinkBody, LinkBody];
  const { headers, text } = await select([first, third], { action: "export" });
  t.regex(headers.get("content-type") ?? "", /^text\/csv/);
  t.regex(headers.get("content-disposition") ?? "", /^attachment; filename="links-org_\w+\.csv"$/);
  const [head = "", ...rows] = text.trim().split("\n");
  t.regex(head, /\bid,url,short_url,slug\b/);
  t.deepEqual(
    rows.map((row) => row.split(",")[0]),
    [third.id, first.id],
  );
  const none = await member.api.send("POST", `${path}/selection`, { json: { ids: [], action: "export" } });
  isProblem(t, none, { status: 422, code: "invalid_ids", fields: ["ids"] });
});

const ELSEWHERE = [
  "https://evil.example/",
  "//evil.example/?search=x",
  "/\\evil.example",
  "javascript:alert(1)",
  "?search=x\r\nSet-Cookie: a=b",
  "..%2f..%2fevil",
  "?next=https://evil.example",
  "@evil.example",
];
for (const return_to of ELSEWHERE) {
  test(`the form returns to the list if it names ${JSON.stringify(return_to)}`, async (t) => {
    const { path, createMany, select } = await openLinks();
    const page = await select(await createMany(1), { action: "archive", return_to });
    const { origin, pathname, searchParams } = new URL(page.url);
    t.deepEqual([origin, pathname], [service.url, path]);
    t.true([...searchParams.keys()].every((name) => ["search", "done", "undo", "signature"].includes(name)));
  });
}

test("another member's session can't be used, and another organization's links stay as they are", async (t) => {
  const { createMany, path, browser, stranger, look } = await openLinks();
  const [link] = (await createMany(1)) as [LinkBody];
  const body = new URLSearchParams({ ids: link.id, action: "archive" });
  const headers = { origin: service.url };
  const forged = await browser.open(`${service.url}${path}/selection`, { method: "POST", body, headers });
  t.is(forged.status, 403);
  const foreign = await stranger.api.send("POST", `${path}/selection`, {
    json: { ids: [link.id], action: "archive" },
  });
  t.is(foreign.status, 404);
  t.deepEqual(await look(link.id), link);
});
