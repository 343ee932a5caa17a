import { readFileSync } from "node:fs";
import test from "ava";
import type { Domain } from "../../resources/domains/types.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { createImportLinks, type RowResult } from "../../resources/links/import/index.ts";
import { readLinkFile } from "../../resources/links/import/read-file.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import type { ImportedLink, LinkStore } from "../../resources/links/types.ts";
import { createWorkQueue } from "../../resources/work-queue.ts";

const OWN_HOST = "links.example";
const DOMAINS = [
  { host: "go.acme.example", verified: true, default: false },
  { host: "xn--gre-6ka8i.example", verified: true, default: false }, // größe.example
  { host: "acme.example", verified: true, default: true },
  { host: "new.acme.example", verified: false, default: false },
] as Domain[];

/** Imports a file into a store that has room for all links, for an organization with these domains. */
async function imported(content: string | Uint8Array, domains: Domain[] = []) {
  const links: ImportedLink[] = [];
  const results: RowResult[] = [];
  const store = {
    beginImport: () => ({
      async add(added: ImportedLink[]) {
        links.push(...added);
        return { outcomes: added.map(() => "imported" as const) };
      },
    }),
  };
  const stores = { links: store as unknown as LinkStore, domains: { list: async () => domains } };
  const reserved = { ...NO_NAMES, shortHost: OWN_HOST };
  const importLinks = createImportLinks(stores, reserved, createWorkQueue(), 500);
  const file = await readLinkFile(async function* () {
    yield Buffer.from(content);
  });
  const onRow = (result: RowResult) => void results.push(result);
  const report = await importLinks({ organizationId: "org_1", actor: OPERATOR }, file, { onRow });
  return { report, links, results };
}

const SPRING = {
  ...{ url: "https://www.acme.example/spring?from=mail", title: "Spring sale", tags: ["mail", "sale"] },
  ...{ archived: false, clicks: 1284, createdAt: Date.UTC(2024, 2, 1, 9, 30) },
};
const JOBS = {
  ...{ url: "https://www.acme.example/jobs", title: null, tags: [] },
  ...{ archived: false, clicks: 37, createdAt: Date.UTC(2023, 10, 20, 16, 5, 12) },
};
const END = Date.UTC(2099, 0, 1);
const NO_TAGS = { tags: [] };
const NO_CLICKS = { clicks: 0 };

type Sample = { format: string; spring?: Partial<ImportedLink>; jobs?: Partial<ImportedLink> };

/** What each sample has beyond, or instead of, the usual values. */
const SAMPLES: Record<string, Sample> = {
  "bitly.csv": { format: "Bitly" },
  "bitly.json": { format: "Bitly", spring: NO_CLICKS, jobs: { ...NO_CLICKS, archived: true } },
  "dub.csv": { format: "Dub", spring: { title: null }, jobs: { archived: true } },
  "shlink.csv": { format: "Shlink" },
  "shlink.json": { format: "Shlink", spring: { expiresAt: END, maxClicks: 5000 } },
  "short-io.csv": { format: "Short.io" },
  "short-io.json": {
    format: "Short.io",
    spring: { ...NO_CLICKS, expiresAt: END, maxClicks: 5000, redirectType: 301 },
    jobs: { ...NO_CLICKS, archived: true },
  },
  "yourls.csv": { format: "YOURLS", spring: NO_TAGS },
  "yourls.json": { format: "YOURLS", spring: NO_TAGS },
  "plain.csv": { format: "linkgate" },
};

const DEFAULTS = { expiresAt: null, maxClicks: null, redirectType: 302 };
const sample = (name: string) => readFileSync(new URL(`link-imports/${name}`, import.meta.url));

test("a file of each service is recognized, and its links keep what it says about them", async (t) => {
  for (const [name, { format, spring, jobs }] of Object.entries(SAMPLES)) {
    const { report, links } = await imported(sample(name));
    t.deepEqual(report, { format, rows: 2, imported: 2, skipped: 0, refused: 0, left: 0 }, name);
    const prefix = name.replace(".", "-");
    t.like(links, [
      { slug: `${prefix}-spring`, ...DEFAULTS, ...SPRING, ...spring },
      { slug: `${prefix}-jobs`, ...DEFAULTS, ...JOBS, ...jobs },
    ]);
  }
});

// Two of them have no domain, and the third has bit.ly.
const WITHOUT_DOMAIN = ["yourls.csv", "plain.csv", "bitly.csv"];

test("links keep the domain of each service if the organization has it, and get the default otherwise", async (t) => {
  for (const name of [...Object.keys(SAMPLES), "dub.json", "kutt.json"]) {
    const [host, other] = WITHOUT_DOMAIN.includes(name) ? ["acme.example", null] : ["go.acme.example", null];
    const domainsOf = async (domains: Domain[]) =>
      (await imported(sample(name), domains)).links.map(({ domain }) => domain);
    t.deepEqual(new Set(await domainsOf(DOMAINS)), new Set([host]), name);
    t.deepEqual(new Set(await domainsOf([])), new Set([other]), `${name}, without domains`);
  }
});

/** What a file can say of a domain → the one that the link gets. */
const PLACES: [fields: object, domain: string | null][] = [
  [{ domain: "GO.acme.example." }, "go.acme.example"],
  [{ domain: "größe.example" }, "xn--gre-6ka8i.example"],
  [{ domain: OWN_HOST }, null],
  [{ short_url: `https://${OWN_HOST}/spring` }, null],
  [{ short_url: "go.acme.example/spring" }, "go.acme.example"],
  [{ domain: "go.acme.example", short_url: "https://acme.example/spring" }, "go.acme.example"],
  ...["new.acme.example", "bit.ly", "go.acme.example:8443", "https://go.acme.example/", 7].map(
    (domain): [object, string] => [{ domain }, "acme.example"],
  ),
  [{}, "acme.example"],
];

test("a domain is recognized however it is written, and only if it is verified", async (t) => {
  for (const [fields, domain] of PLACES) {
    const { links, results } = await imported(row({ slug: "spring", ...fields }), DOMAINS);
    const domains = links.map((link) => link.domain);
    t.deepEqual(domains, [domain], JSON.stringify([fields, results]));
  }
});

test("a slug that the service needs on its own host is imported on a domain", async (t) => {
  const files = [
    row({ slug: "dashboard", domain: "go.acme.example" }),
    row({ slug: "dashboard", domain: OWN_HOST }),
  ];
  const [onDomain, onHost] = await Promise.all(files.map((file) => imported(file, DOMAINS)));
  t.like(onDomain?.links, [{ slug: "dashboard", domain: "go.acme.example" }]);
  t.is(onHost?.results[0]?.reason, "slug is reserved.");
});

test("destinations that Dub has for systems and countries are rules", async (t) => {
  const row = { url: "https://example.com/", key: "spring", shortLink: "https://dub.sh/spring" };
  const { links } = await imported(
    JSON.stringify([
      { ...row, ios: "https://example.com/ios", android: null, geo: { DE: "https://example.com/de" } },
      { ...row, key: "none", geo: null },
      { ...row, key: "invalid", geo: { Germany: "https://example.com/de" } },
    ]),
  );
  t.deepEqual(
    links.map(({ rules }) => rules),
    [
      [
        { if: { os: "iOS" }, url: "https://example.com/ios" },
        { if: { country: "DE" }, url: "https://example.com/de" },
      ],
      [],
    ],
  );
});

const PROTECTED = "The link is protected by a password, which can't be imported.";

test("links that are protected by a password or banned are refused; the others of the file are not", async (t) => {
  const dub = await imported(sample("dub.json"));
  const own = { externalId: "campaign-7", expiresAt: END, lastClickedAt: Date.UTC(2026, 0, 2, 3, 4, 5) };
  t.like(dub.links, [{ ...SPRING, slug: "dub-json-spring", ...own }]);
  t.like(dub.results[1], { row: 2, result: "refused", slug: "dub-json-internal", reason: PROTECTED });
  const kutt = await imported(sample("kutt.json"));
  t.like(kutt.links, [{ ...SPRING, ...NO_TAGS, slug: "kutt-json-spring", expiresAt: END }]);
  const reasons = kutt.results.map(({ reason }) => reason);
  t.deepEqual(reasons, [undefined, PROTECTED, "The link is banned."]);
});

test("several responses of an API in one array are one import", async (t) => {
  const link = (slug: string) => ({ long_url: "https://example.com/", link: `https://bit.ly/${slug}` });
  const page = (slug: string) => ({ links: [link(slug)] });
  const { report, links } = await imported(JSON.stringify([page("page-1"), page("page-2")]));
  t.is(report.format, "Bitly");
  t.is(links.map(({ slug }) => slug).join(), "page-1,page-2");
});

const LAYOUTS: Record<string, string> = {
  "a separator for Excel": "sep=;\r\nurl;slug;title\r\nhttps://example.com/x;layout-1;Hi\r\n",
  "another one after a BOM": "\ufeffsep=\t\nurl\tslug\ttitle\nhttps://example.com/x\tlayout-2\tHi",
  "blank lines before the first": " \n\r\nurl,slug,title\nhttps://example.com/x,layout-3,Hi\n",
  "line breaks of old Macs": "url,slug,title\rhttps://example.com/x,layout-4,Hi\r",
};

test("a file is read in each layout that spreadsheet programs write", async (t) => {
  for (const [what, file] of Object.entries(LAYOUTS)) {
    const { report, links } = await imported(file);
    t.is(report.format, "linkgate", what);
    t.like(links, [{ title: "Hi", url: "https://example.com/x" }], what);
  }
});

const MANY_KEYS = JSON.stringify(
  Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`k${index}`, 1])),
);
const DESTINATION = "https://example.com/";
const row = (fields: object) => JSON.stringify([{ url: DESTINATION, ...fields }]);
const METADATA = `url,slug,metadata\n${DESTINATION},a,`;
const UNCLEAR = "title has a backslash that may stand for the character behind it.";

/** Files with one row, and why it is refused. */
const REFUSED: Record<string, [file: string, reason: string]> = {
  "more cells": [`url,slug\n${DESTINATION},a,one,two`, "The row has more cells than the file has columns."],
  "an unclear flag": [`address,target,banned\nflag,${DESTINATION},maybe`, "banned must be true or false."],
  "a password that says no": [row({ key: "no", domain: "go.example", password: "no" }), PROTECTED],
  "a password": [`url,slug,password\n${DESTINATION},locked,spring`, PROTECTED],
  "a link that had one": [`url,slug,has_password\n${DESTINATION},locked,true`, PROTECTED],
  "backslashes that may stand for one": [`keyword,url,title\npair,${DESTINATION},back\\\\slash`, UNCLEAR],
  "a key __proto__": [`${METADATA}"{""__proto__"": ""x""}"`, "metadata must not have the key __proto__."],
  "nested metadata": [METADATA + "[".repeat(50_000), "metadata must not be nested more than 32 levels deep."],
  "many keys": [`${METADATA}"${MANY_KEYS.replaceAll('"', '""')}"`, "metadata must have at most 100 fields."],
  "a card without a title": [row({ slug: "card", card: { description: "x" } }), "card.title is required."],
  "a card that isn't JSON": [`url,slug,card\n${DESTINATION},a,Spring`, "card must be an object."],
  "tags of another type": [row({ slug: "tags-object", tags: { a: 1 } }), "tags must be an array of strings."],
};

test("a row that can't be imported as it is, is refused with its reason", async (t) => {
  for (const [what, [file, reason]] of Object.entries(REFUSED)) {
    const { links, results } = await imported(file);
    t.deepEqual(links, [], what);
    t.is(results[0]?.reason, reason);
  }
});

test("a card is read from an object of JSON, or from its JSON in a cell", async (t) => {
  const card = { title: "Spring", description: null, image_url: "https://example.com/a.png" };
  const cell = JSON.stringify(card).replaceAll('"', '""');
  for (const file of [row({ slug: "card", card }), `url,slug,card\n${DESTINATION},card,"${cell}"`])
    t.deepEqual((await imported(file)).links[0]?.card, card);
});

test("quoted line breaks, empty lines and missing cells are read as spreadsheets write them", async (t) => {
  const file =
    'url,slug,title\r\n\r\nhttps://example.com/a,cells-1,"a ""b"""\r\nhttps://example.com/b,cells-2\r\n"https://example.com/c",cells-3,"two\r\nlines"\r\n';
  const { links, results } = await imported(file);
  t.is(results.map(({ row, result }) => `${row} ${result}`).join(), "3 imported,4 imported,5 refused");
  t.is(links[0]?.title, 'a "b"');
});

const OK = 'url,slug\nhttps://example.com/,ok\n"https://example.com/';
const UNREADABLE: Record<string, [content: string | Uint8Array, message: RegExp]> = {
  "an empty file": ["", /must not be empty/],
  "a file of another encoding": [
    Buffer.from("url,title\nhttps://example.com/,caf\xe9", "latin1"),
    /^file: The file isn't UTF-8\. In a spreadsheet program, save it as CSV UTF-8\.$/,
  ],
  "unknown columns": [
    "target,name\n1,2",
    /Found: target, name\. Needed: linkgate \(url\); Bitly \(long_url and /,
  ],
  "broken JSON": ['[{"url": ', /must be valid JSON/],
  "JSON that breaks off": [`[{"url": "${DESTINATION}"}, {"url": tru`, /must be valid JSON: .* \(row 2\)/],
  "JSON with a text behind it": [`${row({})} x`, /must be valid JSON: Unexpected “x” at position 33/],
  "a key of JSON": [
    '[{"url": "x", "metadata": {"__proto__": "x"}}]',
    /must not have the key __proto__ \(row 1\)/,
  ],
  "a column twice": ["url,slug,URL\nhttps://a.example/,b,c", /must not have the column URL twice/],
  "text behind a closing quote": [`${OK}"x,b`, /must have a separator after each closing quote \(line 3\)/],
  "an unclosed quote": [`${OK},`, /must close every quote \(line 3\)/],
};

test("a file that can't be read to its end is refused with its reason", async (t) => {
  for (const [what, [content, message]] of Object.entries(UNREADABLE))
    await t.throwsAsync(imported(content), { code: "invalid_file", message }, what);
});
