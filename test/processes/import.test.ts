import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { parse } from "csv-parse/sync";
import { openDatabase } from "../../adapters/database/index.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { settingsFor } from "../harness/inhabited.ts";
import { ROOT, resultOf, runCommand, startCommand, stopPrograms } from "../harness/program.ts";
import { startOnTerminal, testOnTerminal } from "../harness/terminal.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-import-"));
const { url, drop } = await createTestDatabase();
const settings = await settingsFor(url);
const { knex, close } = openDatabase(url);
test.after.always(stopPrograms);
test.after.always(async () => {
  await close();
  await drop();
  rmSync(folder, { recursive: true, force: true });
});

type Report = Record<"rows" | "imported" | "skipped" | "refused" | "left", number> & {
  dry_run: boolean;
  format: string;
};

let count = 0;

async function createOrganization(plan = "growth"): Promise<string> {
  const { organization } = await resultOf<{ organization: { id: string } }>(
    ["org", "create", `Importing ${++count}`, "--plan", plan],
    { settings },
  );
  return organization.id;
}

/** Writes a file as Dub exports it, of which every 1,000th row has a reserved slug. */
function writeExport(rows: number): string {
  const prefix = `dub-${++count}`;
  const lines = Array.from({ length: rows }, (_, index) => {
    const slug = index % 1000 === 999 ? "docs" : `${prefix}-${index}`;
    const created = new Date(Date.UTC(2020, 0, 1) + index * 60_000).toISOString();
    return `https://go.acme.example/${slug},"https://www.acme.example/?a=${index},b",${index % 50},${created},,"mail, sale",false`;
  });
  const file = path.join(folder, `${prefix}.csv`);
  writeFileSync(
    file,
    ["Short link,Destination URL,Clicks,Created at,Updated at,Tags,Archived", ...lines].join("\n"),
  );
  return file;
}

const run = (file: string, org: string, ...options: string[]) =>
  resultOf<Report>(["import", file, "--org", org, ...options], { settings });

const storedLinks = async (organizationId: string) =>
  Number((await knex("links").where({ organization_id: organizationId }).count({ count: "*" }))[0]?.count);

test.serial(
  "an import that is killed leaves whole batches, and repeating it adds what is missing",
  async (t) => {
    const ROWS = 20_000;
    const org = await createOrganization();
    const file = writeExport(ROWS);
    const words = ["import", file, "--org", org, "--json"];
    const command = startCommand(words, { settings });
    await until(async () => ((await storedLinks(org)) > 0 ? true : undefined));
    command.kill("SIGKILL");
    t.is((await command.ended).signal, "SIGKILL");
    const before = await storedLinks(org);
    t.true(before < ROWS);
    const events = await knex("events").where({ organization_id: org, type: "links.imported" });
    const sum = () => events.reduce((total, { data }) => total + JSON.parse(data).imported, 0);
    t.is(sum(), before);
    const refused = ROWS / 1000;
    t.like(await run(file, org), {
      format: "Dub",
      rows: ROWS,
      imported: ROWS - refused - before,
      skipped: before,
      refused,
    });
    t.like(await run(file, org), { imported: 0, skipped: ROWS - refused, refused, left: 0 });
    t.is(await storedLinks(org), ROWS - refused);
    const usage = await knex("organization_usage").where({ organization_id: org }).first();
    t.is(usage?.links, ROWS - refused);
  },
);

test.serial("refused rows are written to a file with their columns, number and reason", async (t) => {
  const org = await createOrganization();
  const file = writeExport(2000);
  const rejected = path.join(folder, "rejected.csv");
  t.like(await run(file, org, "--rejected", rejected), { imported: 1998, refused: 2 });
  const [header, ...lines] = parse(readFileSync(file));
  t.deepEqual(parse(readFileSync(rejected), { bom: true }), [
    ["row", "reason", ...(header as string[])],
    ["1001", "slug is reserved.", ...(lines[999] as string[])],
    ["2001", "slug is reserved.", ...(lines[1999] as string[])],
  ]);
  const again = await runCommand(["import", file, "--org", org, "--rejected", rejected], { settings });
  t.is(again.code, 1);
  t.regex(again.stderr, /exists\. Choose another name\./);
});

const REFUSED: [name: string, content: string][] = [
  [
    "refused.csv",
    `url;slug;title;tags;expires_at;Note
https://www.acme.example/;docs;'=1+1;a,b;2099-01-01;=kept
`,
  ],
  [
    "refused.json",
    JSON.stringify([
      {
        url: "https://www.acme.example/",
        slug: "docs",
        title: "=1+1",
        tags: ["a", "b"],
        metadata: { campaign: "spring" },
        expires_at: "2099-01-01T00:00:00Z",
        max_clicks: null,
      },
    ]),
  ],
];

for (const [name, content] of REFUSED) {
  test.serial(`the repaired rows of ${name} are imported with all that the file says of them`, async (t) => {
    const org = await createOrganization();
    const file = path.join(folder, name);
    const [first, second] = [path.join(folder, `${name}-1.csv`), path.join(folder, `${name}-2.csv`)];
    writeFileSync(file, content);
    const { code, stdout } = await runCommand(["import", file, "--org", org, "--rejected", first, "--json"], {
      settings,
    });
    t.is(code, 1);
    t.like(JSON.parse(stdout), { imported: 0, refused: 1 });
    // Refused again, the row is the same, except for its number.
    await runCommand(["import", first, "--org", org, "--rejected", second], { settings });
    t.is(readFileSync(second, "utf8"), readFileSync(first, "utf8").replace("\n1,", "\n2,"));
    const slug = name.replace(".", "-");
    writeFileSync(second, readFileSync(first, "utf8").replace("docs", slug));
    t.like(await run(second, org), { imported: 1, refused: 0 });
    const link = await knex("links").where({ slug }).first();
    t.like(link, { title: "=1+1", expires_at: Date.UTC(2099, 0, 1) });
    t.deepEqual(link?.tags.match(/\w+/g), ["a", "b"]);
    if (name === "refused.json") t.deepEqual(JSON.parse(link?.metadata ?? ""), { campaign: "spring" });
  });
}

test.serial(
  "a row with a missing value and escapes is refused, repaired and imported as it was",
  async (t) => {
    const org = await createOrganization();
    const file = path.join(folder, "outfile.txt");
    writeFileSync(
      file,
      String.raw`"keyword","url","title","clicks"
"docs","https://example.com/1","He said \"hi\", C:\\new",\N
"outfile","https://example.com/2",\N,"3"
`,
    );
    const rejected = path.join(folder, "outfile-refused.csv");
    t.like(await run(file, org, "--rejected", rejected), { format: "YOURLS", imported: 1, refused: 1 });
    writeFileSync(rejected, readFileSync(rejected, "utf8").replace("docs", "outfile-1"));
    t.like(await run(rejected, org), { imported: 1, refused: 0 });
    const titles = await knex("links").where({ organization_id: org }).orderBy("slug").pluck("title");
    t.deepEqual(titles, [null, String.raw`He said "hi", C:\new`]);
  },
);

test.serial("a file that is broken at its end imports nothing, and a pipe is refused", async (t) => {
  const org = await createOrganization();
  const file = path.join(folder, "broken.csv");
  writeFileSync(file, `${readFileSync(writeExport(1200), "utf8")}\n"https://go.acme.example/x`);
  const { code, stderr } = await runCommand(["import", file, "--org", org, "--json"], { settings });
  t.is(code, 1);
  t.like(JSON.parse(stderr).error, {
    code: "invalid_file",
    message: "file must close every quote (line 1202).",
  });
  t.is(await storedLinks(org), 0);
  const pipe = await runCommand(["import", "/dev/null", "--org", org, "--json"], { settings });
  t.like(JSON.parse(pipe.stderr).error, { code: "invalid_file" });
  t.regex(JSON.parse(pipe.stderr).error.message, /is a pipe or a device\. Save the links to a file first\./);
});

test.serial("a dry run has the result of the import, and stores nothing", async (t) => {
  const org = await createOrganization();
  const file = writeExport(1500);
  const dry = await run(file, org, "--dry-run");
  t.like(dry, { dry_run: true, imported: 1499, refused: 1 });
  t.is(await storedLinks(org), 0);
  t.deepEqual(await run(file, org), { ...dry, dry_run: false });
});

test.serial(
  "a full plan stops the import with exit code 1, and the result says how many rows are left",
  async (t) => {
    const org = await createOrganization("free");
    const file = writeExport(1200);
    const { code, stdout } = await runCommand(["import", file, "--org", org, "--json"], { settings });
    t.is(code, 1);
    t.like(JSON.parse(stdout), {
      imported: 1000,
      refused: 1,
      left: 199,
      stopped: { code: "quota_exceeded" },
    });
    t.is(await storedLinks(org), 1000);
    const { stdout: text } = await runCommand(["import", file, "--org", org], { settings });
    t.regex(text, /^Already imported: 1,000\n.*\nLeft: 199\. Your plan includes 1,000 links\./m);
  },
);

test.serial("what is wrong with a file or an option is said in one sentence", async (t) => {
  const org = await createOrganization();
  const fail = async (...words: string[]) => {
    const { code, stderr } = await runCommand(["import", ...words, "--json"], { settings });
    t.is(code, 1);
    return JSON.parse(stderr).error;
  };
  const file = path.join(folder, "other.csv");
  writeFileSync(file, "name,value\na,b\n");
  t.like(await fail(file), { code: "usage", message: "Missing option --org <org-id>." });
  t.like(await fail(file, "--org", "org_none"), { code: "not_found" });
  t.like(await fail(path.join(folder, "none.csv"), "--org", org), { code: "file_not_found" });
  t.like(await fail(folder, "--org", org), { code: "file_not_found", message: `${folder} is a folder.` });
  const unknown = await fail(file, "--org", org);
  t.is(unknown.code, "invalid_file");
  t.regex(unknown.message, /Found: name, value\. Needed: linkgate \(url\)/);
  if (engine === "sqlite")
    t.like(await fail(url.slice("sqlite:".length), "--org", org), { code: "invalid_file" });
});

const onTerminal = (words: string[], keys: [string, string][] = []) =>
  startOnTerminal([`${ROOT}server/cli/linkgate.js`, "import", ...words], keys, settings).ended;

testOnTerminal("a terminal shows a bar from 0% to the last batch, with the speed", async (t) => {
  const { shown, code } = await onTerminal([writeExport(5000), "--org", await createOrganization()]);
  t.is(code, 0, shown);
  t.regex(shown, /\[\.{20}\] 0%, 0 rows\r/);
  const bars = [...shown.matchAll(/\[#*\.*\] (\d+)%, ([\d,]+) rows, [\d,]+ per second/g)];
  t.true(bars.length > 0, shown);
  for (const [, percent, rows] of bars) {
    const done = Number(rows?.replace(",", ""));
    t.is(done % 500, 0);
    // The rows have almost the same length.
    t.true(Math.abs(Number(percent) - done / 50) <= 2, `${percent}% after ${done}`);
  }
  t.regex(shown, /Imported: 4,995/);
});

testOnTerminal("an import that Ctrl-C stops says how to continue, and continues", async (t) => {
  const org = await createOrganization();
  const file = writeExport(20_000);
  const rejected = ["--rejected", path.join(folder, "stopped.csv")];
  const { shown, code } = await onTerminal([file, "--org", org, ...rejected], [["per second", "\x03"]]);
  t.is(code, -2, shown);
  t.regex(shown, /\[KStopped after [\d,]+ rows\. Run the command again to continue\.\r\n$/);
  const before = await storedLinks(org);
  t.like(await run(file, org, ...rejected), { imported: 19_980 - before, skipped: before });
});
