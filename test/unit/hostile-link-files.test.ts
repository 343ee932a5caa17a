import test from "ava";
import { readLinkFile } from "../../resources/links/import/read-file.ts";
import { turnsDuring } from "../harness/turns.ts";

const MB = 2 ** 20;
const nested = (levels: number, open = "[", close = "]") => open.repeat(levels) + close.repeat(levels);
const keys = JSON.stringify(
  Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, index])),
);
const columns = Array.from({ length: 100_000 }, (_, index) => `column_${index}`).join(",");
const URL = "https://example.com/";
const LINK = `{"url":"${URL}"}`;
const differing = Array.from({ length: 9000 }, (_, index) => `{"k${index}":1}`);
const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;

const FIELDS = "url created_at archived password shortUrls tags metadata short_url".split(" ");
const inRow = (field: string) => `[{"url":"${URL}","${field}":${nested(50_000)}}]`;

const TOO_LONG = /must not have rows of more than 256 KB/;
const NO_HEADER = /must be JSON, or have a first line of at most 64 KB/;
const TOO_DEEP = /must not be nested more than 32 levels deep/;
const IN_ROW_1 = /more than 32 levels deep \(row 1\)/;
const ROWS_MAX = 10_000;

async function read(text: string) {
  const { rows } = await readLinkFile(
    async function* () {
      yield Buffer.from(text);
    },
    (count) => {
      if (count > ROWS_MAX) throw new Error("too many rows");
    },
  );
  return Array.fromAsync(rows);
}

const FILES: Record<string, [file: string, reason: RegExp]> = {
  "5 MB of one letter": ["a".repeat(5 * MB), NO_HEADER],
  "40 KB of one letter": ["a".repeat(40_000), /the columns of a known format\. Found: a{50}\. Needed/],
  "5 MB of spaces": [" ".repeat(5 * MB), /must not be empty/],
  "5 MB of quotes": ['"'.repeat(5 * MB), NO_HEADER],
  "5 MB of quotes in a row": [`url\n"${'""'.repeat(2.5 * MB)}`, /of more than 256 KB \(line 2\)/],
  "5 MB of commas": [`url\n${",".repeat(5 * MB)}`, /must have at most 100 columns \(line 2\)/],
  "100,000 columns": [`url,${columns}\n${URL}`, NO_HEADER],
  "200 columns": [`url${",x".repeat(200)}\n${URL}`, /must have at most 100 columns \(line 1\)/],
  "2,500,000 rows": [`url\n${"a\n".repeat(2.5 * MB)}`, /too many rows/],
  "rows with 60,000 keys": [`url,metadata\n${`${URL},${cell(keys)}\n`.repeat(4)}`, TOO_LONG],
  "JSON rows with 60,000 keys": [`[{"url":"${URL}","metadata":${keys}}]`, /at most 100 fields \(row 1\)/],
  "JSON rows with 100,000 items": [`[${LINK},{"tags":[${"1,".repeat(100_000)}1]}]`, /1,000 items \(row 2\)/],
  "JSON rows of different keys": [`[${LINK},${differing}]`, /must have at most 100 different fields/],
  "JSON of 2,000,000 numbers": [`[${"1,".repeat(2 * MB)}1]`, /: A link must be an object \(row 1\)/],
  "JSON of 1,700,000 empty objects": [`[${"{},".repeat(1.7 * MB)}{}]`, /too many rows/],
  "JSON of 5 MB of quotes": [`["${'\\"'.repeat(2.5 * MB)}`, TOO_LONG],
  "JSON nested 2,500,000 times": [nested(2.5 * MB), /nested more than 32 levels deep \(row 1\)/],
  "JSON with lists in lists": [nested(50_000, '{"links":', "}"), TOO_DEEP],
  "JSON with responses in responses": [nested(50_000, '{"shortUrls":', "}"), TOO_DEEP],
  ...Object.fromEntries(
    FIELDS.map((field) => [`JSON whose ${field} is nested 50,000 times`, [inRow(field), IN_ROW_1]]),
  ),
};

// A file of 32 KB takes one.
const MIN_TURNS = 10;
// The slowest takes a tenth of it, and read by backtracking, 40 KB took twice as long.
const CPU_MAX_MS = 1000;

test.serial("a hostile file is refused with its reason, soon", async (t) => {
  for (const [name, [file, reason]] of Object.entries(FILES)) {
    const before = process.cpuUsage();
    await t.throwsAsync(read(file), { message: reason }, name);
    const { user, system } = process.cpuUsage(before);
    t.true((user + system) / 1000 < CPU_MAX_MS, `${name}: ${(user + system) / 1000} ms`);
  }
});

test.serial("a large file is read in parts, and other requests are served in between", async (t) => {
  const line = `https://example.com/${"x".repeat(400)}\n`;
  const links = JSON.stringify(Array.from({ length: 9000 }, (_, index) => ({ url: URL, title: `${index}` })));
  for (const file of [`url\n${line.repeat(9000)}`, links]) {
    let rows: unknown[] = [];
    const turns = await turnsDuring(async () => {
      rows = await read(file);
    });
    t.is(rows.length, 9000);
    t.true(turns > MIN_TURNS, `${turns} turns`);
  }
});
