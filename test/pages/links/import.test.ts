import test from "ava";
import { slugOf } from "../../../resources/links/rules.ts";
import { isProblem, type PageBody } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { importLinks } from "../../harness/clients/link-import.ts";
import { isMarked, linksInBrowser, textsOn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

let count = 0;

/** Returns a file with a link, one that is refused, and one that is in the file twice. */
function fileOf(prefix = `page-${++count}`) {
  const text = `url,slug,title,tags,created_at,clicks
https://example.com/a?b=1&c=<d>,${prefix}-a,"Title, ""quoted""","x, y",2020-02-03,12
https://example.com/b,docs,,,,
https://example.com/c,${prefix}-c,,,,
https://example.com/c,${prefix}-c,,,,
`;
  return { prefix, text };
}

const facts = (page: Page) => {
  const values = textsOn(page, ".facts dd");
  return Object.fromEntries(textsOn(page, ".facts dt").map((term, index) => [term, values[index]]));
};
const rows = ({ html }: Page) =>
  html
    .querySelectorAll("main tbody tr")
    .map((row) => row.querySelectorAll("td").map((cell) => cell.text.trim().replaceAll(/\s+/g, " ")));

test("a file is previewed without JavaScript, and imported on confirmation", async (t) => {
  const { browser, open, list } = await linksInBrowser(service);
  const { prefix, text } = fileOf();
  const preview = await browser.press(await open("/import"), "Preview", { file: text });
  t.regex(preview.text, /Nothing is imported yet/);
  t.deepEqual(facts(preview), { Rows: "4", Ready: "2", "Already imported": "1", Skipped: "1" });
  t.deepEqual(rows(preview), [
    ["3", "docs", "https://example.com/b", "skipped The slug is reserved."],
    ["5", `${prefix}-c`, "https://example.com/c", "already imported"],
    ["2", `${prefix}-a`, 'Title, "quoted" https://example.com/a?b=1&c=<d>', "ready"],
    ["4", `${prefix}-c`, "https://example.com/c", "ready"],
  ]);
  t.deepEqual(await list(), []);
  const done = await browser.press(preview, "Import 2 links");
  t.deepEqual(textsOn(done, "[role=status]"), ["2 links imported. 1 row skipped."]);
  t.deepEqual(facts(done), { Rows: "4", Imported: "2", "Already imported": "1", Skipped: "1" });
  const imported = await list();
  const { text: shown } = await open(`/${imported[1]?.id}`);
  t.regex(shown, /12 imported clicks\. No new clicks in the last 30 days\./);
  t.like(imported, [
    { slug: `${prefix}-c`, title: null, clicks: 0 },
    {
      slug: `${prefix}-a`,
      url: "https://example.com/a?b=1&c=<d>",
      title: 'Title, "quoted"',
      tags: ["x", "y"],
      clicks: 12,
      created_at: "2020-02-03T00:00:00.000Z",
    },
  ]);
});

test("sending the confirmation again imports nothing twice, and a preview without a row to import has no button", async (t) => {
  const { browser, open, list } = await linksInBrowser(service);
  const previewOf = async (file: string) => browser.press(await open("/import"), "Preview", { file });
  const preview = await previewOf(fileOf().text);
  await browser.press(preview, "Import 2 links");
  const again = await browser.press(preview, "Import 2 links");
  t.like(facts(again), { Imported: "0", "Already imported": "3" });
  t.is((await list()).length, 2);
  const refused = await previewOf("url,slug\nhttps://example.com/,docs\n");
  t.notRegex(textsOn(refused, "main button").join(), /Import/);
  for (const [file, reason] of [
    ["name\nvalue\n", /columns of a known format\. Found: name\. Needed: linkgate \(url\)/],
    ["", /Must not be empty/],
    [`url\n${"https://example.com/\n".repeat(10_001)}`, /at most 10,000 rows/],
  ] as const) {
    const rejected = await previewOf(file);
    t.is(rejected.status, 422);
    isMarked(t, rejected, "file", reason);
  }
});

test("a large preview shows the refused rows first, and says how many rows it leaves out", async (t) => {
  const { browser, open } = await linksInBrowser(service);
  const lines = Array.from({ length: 700 }, (_, index) => `https://example.com/${index},large-${index}`);
  const preview = await browser.press(await open("/import"), "Preview", {
    file: ["url,slug", ...lines, "https://example.com/,v1"].join("\n"),
  });
  t.is(rows(preview).length, 500);
  t.is(rows(preview)[0]?.[1], "v1");
  t.regex(preview.text, /201 rows more are not shown/);
});

test("rows without a slug get one, the same each time, or a random one if those from their URL are taken", async (t) => {
  const { base, owner, organization, other } = await createTeam(service);
  const file = "url,title\nhttps://example.com/1,One\nhttps://example.com/2,Two\nhttps://example.com/1,One\n";
  t.like((await importLinks(owner.api, base, file)).body, { imported: 2, skipped: 1 });
  t.like((await importLinks(owner.api, base, file)).body, { imported: 0, skipped: 3 });
  const url = "https://example.com/derived";
  for (let attempt = 0; attempt < 6; attempt++) {
    const slug = slugOf(`${organization.id} ${url} ${attempt}`);
    await service.storage.links.create(other.id, OPERATOR, linkFields({ slug }));
  }
  t.like((await importLinks(owner.api, base, `url\n${url}\n`)).body, { imported: 1, refused: 0 });
  const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
  t.true(data.every(({ slug }) => /^[A-Za-z0-9]{7}$/.test(slug)));
});

test("an organization imports one file at a time, and a user uploads one; more than two are refused", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  for (const callers of [
    [owner, owner, owner, owner],
    [owner, admin, member],
  ]) {
    let file = "";
    let replies: Awaited<ReturnType<typeof importLinks>>[] = [];
    const isRefused = ({ status }: { status: number }) => status === 429;
    // Each part is committed before the next, so the others arrive in the meantime, unless the process is busy.
    for (let attempt = 0; attempt < 5 && !replies.some(isRefused); attempt++) {
      const address = `https://example.com/${callers.length}/${attempt}`;
      file = ["url", ...Array.from({ length: 2000 }, (_, index) => `${address}/${index}`)].join("\n");
      replies = await Promise.all(callers.map(({ api }) => importLinks(api, base, file)));
      t.true(replies.some(({ status }) => status === 200));
    }
    const refused = replies.find(isRefused);
    isProblem(t, refused as (typeof replies)[0], { status: 429, code: "rate_limited" });
    t.regex(refused?.body.detail ?? "", /too many (uploads|imports) in progress/);
    t.truthy(refused?.headers.get("retry-after"));
    t.is((await importLinks(owner.api, base, file)).body.skipped, 2000);
  }
});

test("a larger file, no file, a form with a file elsewhere, and one without a CSRF token are refused", async (t) => {
  const { base, owner, browser, path } = await linksInBrowser(service);
  const form = new FormData();
  form.set("file", new File(["url\nhttps://example.com/\n"], "links.csv"));
  const headers = { origin: service.url, accept: "application/json" };
  const forged = await browser.open(`${service.url}${path}/import`, { method: "POST", body: form, headers });
  t.is(forged.status, 403);
  t.regex(forged.text, /"code":"invalid_csrf_token"/);
  const large = await importLinks(owner.api, base, `url\n${"x".repeat(5 * 2 ** 20)}`);
  t.is(large.status, 422);
  t.regex(large.body.detail ?? "", /at most 5 MB/);
  const larger = await importLinks(owner.api, base, "x".repeat(11 * 2 ** 20));
  isProblem(t, larger, { status: 413, code: "body_too_large" });
  const none = await owner.api.send("POST", `${base}/links/import`, { json: {} });
  isProblem(t, none, { status: 422, code: "invalid_file", fields: ["file"] });
  const elsewhere = await owner.api.send("POST", `${base}/links`, { body: new FormData() });
  isProblem(t, elsewhere, { status: 415, code: "unsupported_media_type" });
});
