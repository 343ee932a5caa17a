import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import type { ProblemBody } from "../../../../resources/http/problem.ts";
import { slugOf } from "../../../../resources/links/rules.ts";
import { BROWSER, isProblem, type PageBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { importLinks } from "../../../harness/clients/link-import.ts";
import { isMarked, linksInBrowser } from "../../../harness/clients/pages.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { linkFields } from "../../../harness/database/storage.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

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

const facts = ({ html }: Page) =>
  Object.fromEntries(
    html
      .querySelectorAll(".facts dt")
      .map((term) => [term.text, term.nextElementSibling?.text])
      .filter(([term]) => term),
  );
const rows = ({ html }: Page) =>
  html
    .querySelectorAll("main tbody tr")
    .map((row) => row.querySelectorAll("td").map((cell) => cell.text.trim().replaceAll(/\s+/g, " ")));

test("a file is previewed without JavaScript, and imported on confirmation", async (t) => {
  const { browser, open, list } = await linksInBrowser(service);
  const { prefix, text } = fileOf();
  const preview = await browser.press(await open("/import"), "Preview", { file: text });
  t.is(preview.status, 200);
  t.regex(preview.text, /Nothing is imported yet/);
  t.deepEqual(facts(preview), { Rows: "4", "To import": "2", "Already imported": "1", Refused: "1" });
  t.deepEqual(rows(preview), [
    ["3", "docs", "https://example.com/b", "refused The slug is reserved."],
    ["5", `${prefix}-c`, "https://example.com/c", "already imported"],
    ["2", `${prefix}-a`, 'Title, "quoted" https://example.com/a?b=1&c=<d>', "to import"],
    ["4", `${prefix}-c`, "https://example.com/c", "to import"],
  ]);
  t.deepEqual(await list(), []);
  const done = await browser.press(preview, "Import 2 links");
  t.regex(done.html.querySelector("h1")?.text ?? "", /2 links imported/);
  t.deepEqual(facts(done), { Rows: "4", Imported: "2", "Already imported": "1", Refused: "1" });
  const links = await list();
  t.like(links, [
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

test("sending the confirmation again imports nothing twice", async (t) => {
  const { browser, open, list } = await linksInBrowser(service);
  const preview = await browser.press(await open("/import"), "Preview", { file: fileOf().text });
  await browser.press(preview, "Import 2 links");
  const again = await browser.press(preview, "Import 2 links");
  t.like(facts(again), { Imported: "0", "Already imported": "3" });
  t.is((await list()).length, 2);
  const next = await browser.press(await open("/import"), "Preview", { file: fileOf().text });
  t.truthy(next.html.querySelector("button"));
});

test("a preview in which nothing is left to import has no button", async (t) => {
  const { browser, open } = await linksInBrowser(service);
  const preview = await browser.press(await open("/import"), "Preview", {
    file: "url,slug\nhttps://example.com/,docs\n",
  });
  t.false(preview.html.querySelectorAll("main button").some((button) => /Import/.test(button.text)));
});

test("a file that can't be read is rejected beside its field", async (t) => {
  const { browser, open } = await linksInBrowser(service);
  const rejected = await browser.press(await open("/import"), "Preview", { file: "name\nvalue\n" });
  t.is(rejected.status, 422);
  isMarked(t, rejected, "file", /columns of a known format\. Found: name\. Needed: linkgate \(url\)/);
  const empty = await browser.press(await open("/import"), "Preview");
  t.is(empty.status, 422);
  isMarked(t, empty, "file", /Must not be empty/);
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

test("a member may import; users of other organizations may not", async (t) => {
  const { base, member, stranger } = await createTeam(service);
  t.is((await importLinks(member.api, base, fileOf().text)).body.imported, 2);
  const refused = await importLinks(stranger.api, base, fileOf().text);
  t.is(refused.status, 404);
});

test("an import names its user as the creator", async (t) => {
  const { base, member } = await createTeam(service);
  await importLinks(member.api, base, fileOf().text);
  const { data } = (await member.api.get<PageBody>(`${base}/links`)).body;
  t.deepEqual(
    data.map((link) => link.created_by),
    [member.id, member.id],
  );
});

test("rows without a slug get one, the same each time", async (t) => {
  const { base, owner } = await createTeam(service);
  const file = "url,title\nhttps://example.com/1,One\nhttps://example.com/2,Two\nhttps://example.com/1,One\n";
  t.like((await importLinks(owner.api, base, file)).body, { imported: 2, skipped: 1 });
  t.like((await importLinks(owner.api, base, file)).body, { imported: 0, skipped: 3 });
  const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
  t.deepEqual(data.map(({ url }) => url).sort(), ["https://example.com/1", "https://example.com/2"]);
  t.true(data.every(({ slug }) => /^[A-Za-z0-9]{7}$/.test(slug)));
});

test("a row without a slug gets a random one if those that follow from its URL are taken", async (t) => {
  const { base, owner, organization, other } = await createTeam(service);
  const url = "https://example.com/derived";
  for (let attempt = 0; attempt < 6; attempt++) {
    const slug = slugOf(`${organization.id} ${url} ${attempt}`);
    await service.storage.links.create(other.id, OPERATOR, linkFields({ slug }));
  }
  t.like((await importLinks(owner.api, base, `url\n${url}\n`)).body, { imported: 1, refused: 0 });
});

test("an organization imports one file at a time, and a user uploads one; more than two are refused", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  for (const callers of [
    [owner, owner, owner, owner],
    [owner, admin, member],
  ]) {
    // Each part is committed before the next, so the others arrive in the meantime.
    const lines = Array.from(
      { length: 2000 },
      (_, index) => `https://example.com/${callers.length}/${index}`,
    );
    const file = ["url", ...lines].join("\n");
    const replies = await Promise.all(callers.map(({ api }) => importLinks(api, base, file)));
    const [status, ...others] = replies.map(({ status }) => status).sort();
    t.deepEqual([status, others.at(-1)], [200, 429]);
    const refused = replies.find(({ status }) => status === 429);
    isProblem(t, refused as (typeof replies)[0], { status: 429, code: "rate_limited" });
    t.regex(refused?.body.detail ?? "", /too many (uploads|imports) in progress/);
    t.truthy(refused?.headers.get("retry-after"));
    t.is((await importLinks(owner.api, base, file)).body.skipped, 2000);
  }
});

test("a full plan stops the import, and the result says how many rows are left", async (t) => {
  const { base, owner, organization } = await createTeam(service, "free");
  const lines = Array.from(
    { length: 1005 },
    (_, index) => `https://example.com/${index},${organization.id}-${index}`,
  );
  const file = ["url,slug", ...lines].join("\n");
  const trial = (await importLinks(owner.api, base, file, true)).body;
  t.like(trial, { imported: 1000, left: 5, stopped: { code: "quota_exceeded" } });
  const { body } = await importLinks(owner.api, base, file);
  t.like(body, { rows: 1005, imported: 1000, skipped: 0, refused: 0, left: 5 });
  t.regex(body.stopped?.message ?? "", /Your plan includes 1,000 links/);
  t.deepEqual([...new Set(body.results.slice(1000).map(({ result }) => result))], ["left"]);
  t.like((await importLinks(owner.api, base, file)).body, { imported: 0, skipped: 1000, left: 5 });
});

const REFUSED: Record<string, [row: string, reason: RegExp]> = {
  "a reserved slug": ["https://example.com/,Admin,,,,,", /slug is reserved/],
  "a slug with other characters": [
    "https://example.com/,a/b,,,,,",
    /slug must be 1 to 64 characters from A-Z/,
  ],
  "a URL of this service": [`${service.url}/x,own-url,,,,,`, /url must not point to this service/],
  "another scheme": ["ftp://example.com/,scheme,,,,,", /url must be an http or https URL/],
  "a missing URL": [",missing,,,,,", /url is required/],
  "an ambiguous date": [
    "https://example.com/,ambiguous,,,01/02/2024,,",
    /created_at must be an RFC 3339 time/,
  ],
  "a date in the future": [
    "https://example.com/,future,,,2999-01-01,,",
    /created_at must not be in the future/,
  ],
  "a date before 1970": ["https://example.com/,past,,,1969-12-31,,", /created_at must not be before 1970/],
  "clicks that are no number": ["https://example.com/,clicks,,,,many,", /clicks must be a whole number/],
  "a long tag": [`https://example.com/,tag,,${"x".repeat(51)},,,`, /tags\.0 must be 1 to 50 characters/],
  "an expiry that is no time": [
    "https://example.com/,expiry,,,,,soon",
    /expires_at must be an RFC 3339 time/,
  ],
};

for (const [what, [row, reason]] of Object.entries(REFUSED)) {
  test(`${what} is refused with its rule`, async (t) => {
    const { base, owner } = await createTeam(service);
    const { body } = await importLinks(
      owner.api,
      base,
      `url,slug,title,tags,created_at,clicks,expires_at\n${row}\n`,
    );
    t.like(body, { imported: 0, refused: 1 });
    t.regex(body.results[0]?.reason ?? "", reason);
  });
}

test("a link that has expired is imported as expired", async (t) => {
  const { base, owner } = await createTeam(service);
  const file = "url,slug,expires_at\nhttps://example.com/,expired-import,2020-01-01\n";
  t.is((await importLinks(owner.api, base, file)).body.imported, 1);
  t.is((await fetch(`${service.url}/expired-import`, { redirect: "manual" })).status, 410);
});

test("an imported link redirects, and counts from its clicks so far", async (t) => {
  const { base, owner } = await createTeam(service);
  await importLinks(owner.api, base, "url,slug,clicks\nhttps://example.com/to,counted-import,41\n");
  const { status, headers } = await fetch(`${service.url}/counted-import`, {
    redirect: "manual",
    headers: { "user-agent": BROWSER },
  });
  t.is(status, 302);
  t.is(headers.get("location"), "https://example.com/to");
  const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
  t.is(data[0]?.clicks, 42);
});

test("an upload without a CSRF token is refused", async (t) => {
  const { browser, path } = await linksInBrowser(service);
  const body = new FormData();
  body.set("file", new File(["url\nhttps://example.com/\n"], "links.csv"));
  const { status, text } = await browser.open(`${service.url}${path}/import`, {
    method: "POST",
    body,
    headers: { origin: service.url, accept: "application/json" },
  });
  t.is(status, 403);
  t.is((JSON.parse(text) as ProblemBody).code, "invalid_csrf_token");
});

test("a larger file, and a form with a file elsewhere, are refused", async (t) => {
  const { base, owner } = await createTeam(service);
  const large = await importLinks(owner.api, base, `url\n${"x".repeat(5 * 2 ** 20)}`);
  t.is(large.status, 422);
  t.regex(large.body.detail ?? "", /at most 5 MB/);
  const larger = await importLinks(owner.api, base, "x".repeat(11 * 2 ** 20));
  isProblem(t, larger, { status: 413, code: "body_too_large" });
  const elsewhere = await owner.api.send("POST", `${base}/links`, { body: new FormData() });
  isProblem(t, elsewhere, { status: 415, code: "unsupported_media_type" });
});

const PART = 'content-disposition: form-data; name="x"';

const FORMS: Record<string, [body: string, status: number, code: string]> = {
  "100,000 parts": [`--xyz\r\n${PART}\r\n\r\n\r\n`.repeat(100_000), 422, "invalid_request"],
  "a part with 500,000 headers": [
    `--xyz\r\n${"a: b\r\n".repeat(500_000)}${PART}\r\n\r\n`,
    400,
    "invalid_request",
  ],
  "a part with 500,000 parameters": [
    `--xyz\r\n${PART}${'; a="b"'.repeat(500_000)}\r\n\r\n`,
    400,
    "invalid_request",
  ],
  "a part with a name of 4 MB": [
    `--xyz\r\n${PART}${"x".repeat(4 * 2 ** 20)}\r\n\r\n`,
    400,
    "invalid_request",
  ],
};

for (const [what, [body, status, code]] of Object.entries(FORMS)) {
  test(`a form with ${what} is refused before it is parsed`, async (t) => {
    const { base, owner } = await createTeam(service);
    // A parameter whose name ends like it can't hide the boundary.
    for (const type of ["boundary=xyz", 'boundary="xyz"', "xboundary=abc; boundary=xyz"]) {
      const reply = await owner.api.send("POST", `${base}/links/import`, {
        body: `${body}--xyz--\r\n`,
        headers: { "content-type": `multipart/form-data; ${type}` },
      });
      if (type.startsWith("x")) t.is(reply.status, 400);
      else isProblem(t, reply, { status, code, ...(status === 422 && { fields: [""] }) });
    }
  });
}
