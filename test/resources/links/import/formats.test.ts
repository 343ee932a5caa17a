import { readFileSync } from "node:fs";
import test from "ava";
import { isProblem, type LinkBody, type PageBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { importLinks } from "../../../harness/clients/link-import.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

async function imported(content: string | Uint8Array) {
  const { base, owner } = await createTeam(service);
  const { status, body } = await importLinks(owner.api, base, content);
  const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
  return { status, body, data };
}

const SPRING = {
  url: "https://www.acme.example/spring?from=mail",
  title: "Spring sale",
  tags: ["mail", "sale"],
  archived: false,
  clicks: 1284,
  created_at: "2024-03-01T09:30:00.000Z",
};
const JOBS = {
  url: "https://www.acme.example/jobs",
  title: null,
  tags: [],
  archived: false,
  clicks: 37,
  created_at: "2023-11-20T16:05:12.000Z",
};
const END = "2099-01-01T00:00:00.000Z";
const NO_TAGS = { tags: [] };
const NO_CLICKS = { clicks: 0 };

type Sample = { format: string; spring?: Partial<LinkBody>; jobs?: Partial<LinkBody> };

/** What each sample has beyond, or instead of, the usual values. */
const SAMPLES: Record<string, Sample> = {
  "bitly.csv": { format: "Bitly" },
  "bitly.json": { format: "Bitly", spring: NO_CLICKS, jobs: { ...NO_CLICKS, archived: true } },
  "dub.csv": { format: "Dub", spring: { title: null }, jobs: { archived: true } },
  "shlink.csv": { format: "Shlink" },
  "shlink.json": { format: "Shlink", spring: { expires_at: END, max_clicks: 5000 } },
  "short-io.csv": { format: "Short.io" },
  "short-io.json": {
    format: "Short.io",
    spring: { ...NO_CLICKS, expires_at: END, max_clicks: 5000, redirect_type: 301 },
    jobs: { ...NO_CLICKS, archived: true },
  },
  "yourls.csv": { format: "YOURLS", spring: NO_TAGS },
  "yourls.json": { format: "YOURLS", spring: NO_TAGS },
  "plain.csv": { format: "linkgate" },
};

for (const [name, { format, spring, jobs }] of Object.entries(SAMPLES)) {
  test(`${name} is recognized, and its links keep what the file says about them`, async (t) => {
    const { body, data } = await imported(readFileSync(new URL(name, import.meta.url)));
    t.like(body, { dry_run: false, format, rows: 2, imported: 2, skipped: 0, refused: 0, left: 0 });
    const prefix = name.replace(".", "-");
    t.like(data, [
      {
        slug: `${prefix}-spring`,
        expires_at: null,
        max_clicks: null,
        redirect_type: 302,
        ...SPRING,
        ...spring,
      },
      { slug: `${prefix}-jobs`, expires_at: null, max_clicks: null, redirect_type: 302, ...JOBS, ...jobs },
    ]);
  });
}

test("dub.json keeps the external ID, and refuses a link with a password", async (t) => {
  const { body, data } = await imported(readFileSync(new URL("dub.json", import.meta.url)));
  t.like(body, { format: "Dub", rows: 2, imported: 1, refused: 1 });
  const own = { external_id: "campaign-7", expires_at: END, last_clicked_at: "2026-01-02T03:04:05.000Z" };
  t.like(data, [{ ...SPRING, slug: "dub-json-spring", ...own }]);
  t.like(body.results[1], { row: 2, result: "refused", slug: "dub-json-internal" });
  t.regex(body.results[1]?.reason ?? "", /protected by a password/);
});

test("kutt.json refuses links with a password, and banned ones", async (t) => {
  const { body, data } = await imported(readFileSync(new URL("kutt.json", import.meta.url)));
  t.like(body, { format: "Kutt", rows: 3, imported: 1, refused: 2 });
  t.like(data, [{ ...SPRING, ...NO_TAGS, slug: "kutt-json-spring", expires_at: END }]);
  t.deepEqual(
    body.results.slice(1).map(({ reason }) => reason),
    ["The link is protected by a password, which links can't be.", "The link is banned."],
  );
});

test("several responses of an API in one array are one import", async (t) => {
  const page = (slug: string) => ({
    links: [{ long_url: `https://example.com/${slug}`, link: `https://bit.ly/${slug}` }],
  });
  const { body, data } = await imported(JSON.stringify([page("page-1"), page("page-2")]));
  t.like(body, { format: "Bitly", imported: 2 });
  t.deepEqual(data.map(({ slug }) => slug).sort(), ["page-1", "page-2"]);
});

const LAYOUTS: Record<string, string> = {
  "a separator for Excel": "sep=;\r\nurl;slug;title\r\nhttps://example.com/x;layout-1;Hi\r\n",
  "a separator for Excel after a byte order mark":
    "\ufeffsep=\t\nurl\tslug\ttitle\nhttps://example.com/x\tlayout-2\tHi",
  "blank lines before the first": " \n\r\nurl,slug,title\nhttps://example.com/x,layout-3,Hi\n",
  "line breaks of old Macs": "url,slug,title\rhttps://example.com/x,layout-4,Hi\r",
  "empty columns at the end": "url,slug,title,,\nhttps://example.com/x,layout-5,Hi,,,\n",
};

for (const [what, file] of Object.entries(LAYOUTS)) {
  test(`a file with ${what} is read`, async (t) => {
    const { body, data } = await imported(file);
    t.like(body, { format: "linkgate", rows: 1, imported: 1 });
    t.like(data, [{ title: "Hi", url: "https://example.com/x" }]);
  });
}

/** Files with one row, and why it is refused. */
const REFUSED: Record<string, [file: string, reason: string]> = {
  "more cells than columns": [
    "url,slug,title\nhttps://example.com/,cells-4,one,two",
    "The row has more cells than the file has columns.",
  ],
  "a flag that is neither true nor false": [
    "address,target,banned\nflag,https://example.com/,maybe",
    "banned must be true or false.",
  ],
  "a password that reads like a word for false": [
    JSON.stringify([{ url: "https://example.com/", key: "no", domain: "go.example", password: "no" }]),
    "The link is protected by a password, which links can't be.",
  ],
  "backslashes that may stand for one": [
    String.raw`keyword,url,title
pair,https://example.com/,back\\slash`,
    "title has a backslash that may stand for the character behind it.",
  ],
  "metadata with a key that replaces the prototype": [
    'url,slug,metadata\nhttps://example.com/,proto,"{""__proto__"": ""x""}"',
    "metadata must not have the key __proto__.",
  ],
  "nested metadata": [
    `url,slug,metadata\nhttps://example.com/,deep,${"[".repeat(50_000)}`,
    "metadata must not be nested more than 32 levels deep.",
  ],
  "metadata with many keys": [
    `url,slug,metadata\nhttps://example.com/,many,"${JSON.stringify(Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`k${index}`, 1]))).replaceAll('"', '""')}"`,
    "metadata must have at most 100 fields.",
  ],
  "tags of another type": [
    JSON.stringify([{ url: "https://example.com/", slug: "tags-object", tags: { a: 1 } }]),
    "tags must be an array of strings.",
  ],
  "a slug of another type": [
    JSON.stringify([{ url: "https://example.com/", slug: ["list"] }]),
    "slug must be a string.",
  ],
};

for (const [what, [file, reason]] of Object.entries(REFUSED)) {
  test(`${what}: the row is refused with its reason`, async (t) => {
    const { body, data } = await imported(file);
    t.like(body, { rows: 1, imported: 0, refused: 1 });
    t.is(body.results[0]?.reason, reason);
    t.deepEqual(data, []);
  });
}

test("quoted line breaks, empty lines and missing cells are read as spreadsheets write them", async (t) => {
  const file =
    'url,slug,title\r\n\r\nhttps://example.com/a,cells-1,"a ""b"""\r\nhttps://example.com/b,cells-2\r\n"https://example.com/c",cells-3,"two\r\nlines"\r\n';
  const { body, data } = await imported(file);
  t.like(body, { rows: 3, imported: 2, refused: 1 });
  t.deepEqual(
    body.results.map(({ row, result }) => [row, result]),
    [
      [3, "imported"],
      [4, "imported"],
      [5, "refused"],
    ],
  );
  t.is(data.find(({ slug }) => slug === "cells-1")?.title, 'a "b"');
});

const UNREADABLE: Record<string, [content: string | Uint8Array, message: RegExp]> = {
  "an empty file": ["", /must not be empty/],
  "a file of another encoding": [
    Buffer.from("url,title\nhttps://example.com/,caf\xe9", "latin1"),
    /^file: The file isn't UTF-8\. In a spreadsheet program, save it as CSV UTF-8\.$/,
  ],
  "unknown columns": [
    "target,name\n1,2",
    /Found: target, name\. Needed: linkgate \(url\); Bitly \(long_url and link/,
  ],
  "broken JSON": ['[{"url": ', /must be valid JSON/],
  "JSON that breaks off": [
    `[{"url": "https://example.com/", "slug": "ok"}, {"url": tru`,
    /must be valid JSON: .* \(row 2\)/,
  ],
  "JSON with a text behind it": [
    '[{"url": "https://example.com/"}] x',
    /must be valid JSON: Unexpected “x” at position 34/,
  ],
  "JSON with a key that replaces the prototype": [
    '[{"url": "https://example.com/", "metadata": {"__proto__": "x"}}]',
    /must not have the key __proto__ \(row 1\)/,
  ],
  "JSON nested 50,000 times": [
    `[{"url": ${"[".repeat(50_000)}${"]".repeat(50_000)}}]`,
    /must not be nested more than 32 levels deep \(row 1\)/,
  ],
  "a column that is there twice": [
    "url,slug,URL\nhttps://example.com/a,b,c",
    /must not have the column URL twice/,
  ],
  "text behind a closing quote": [
    'url,slug\nhttps://example.com/,ok\n"https://example.com/"x,b',
    /must have a separator after each closing quote \(line 3\)/,
  ],
  "an unclosed quote": [
    'url,slug\nhttps://example.com/,ok\n"https://example.com/,',
    /must close every quote \(line 3\)/,
  ],
  "more rows than a page takes": [`url\n${"https://example.com/\n".repeat(10_001)}`, /at most 10,000 rows/],
};

for (const [what, [content, message]] of Object.entries(UNREADABLE)) {
  test(`${what}: the file is rejected, and nothing is imported`, async (t) => {
    const { base, owner } = await createTeam(service);
    const reply = await importLinks(owner.api, base, content);
    t.is(reply.status, 422);
    t.is(reply.body.code, "invalid_file");
    t.regex(reply.body.detail ?? "", message);
    t.is((await owner.api.get<PageBody>(`${base}/links`)).body.data.length, 0);
  });
}

test("a request without a file names the field", async (t) => {
  const { base, owner } = await createTeam(service);
  const reply = await owner.api.send("POST", `${base}/links/import`, { json: {} });
  isProblem(t, reply, { status: 422, code: "invalid_file", fields: ["file"] });
});
