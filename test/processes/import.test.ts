import { readFileSync, writeFileSync } from "node:fs";
import test from "ava";
import { parse } from "csv-parse/sync";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import { inspect } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { refusalOf, resultOf, runCommand, startCommand, temporaryFolder } from "../harness/program.ts";
import { commandOnTerminal, testOnTerminal } from "../harness/terminal.ts";
import { until } from "../harness/webhooks.ts";

const folder = temporaryFolder("import");
const { settings, storage } = await prepareServers();
const { knex } = inspect(settings.DATABASE_URL);

type Report = Record<"rows" | "imported" | "skipped" | "refused" | "left", number> & {
  dry_run: boolean;
  format: string;
};

let count = 0;

async function createOrganization(plan: Plan = "growth"): Promise<string> {
  return (await storage.organizations.create(`Importing ${++count}`, plan, OPERATOR)).organization.id;
}

/** Writes a file as Dub exports it, of which every 1,000th row has a reserved slug. */
function writeExport(rows: number): string {
  const prefix = `dub-${++count}`;
  const lines = Array.from({ length: rows }, (_, index) => {
    const slug = index % 1000 === 999 ? "docs" : `${prefix}-${index}`;
    const created = new Date(Date.UTC(2020, 0, 1) + index * 60_000).toISOString();
    return `https://go.acme.example/${slug},"https://www.acme.example/?a=${index},b",${index % 50},${created},,"mail, sale",false`;
  });
  const file = `${folder}/${prefix}.csv`;
  const header = "Short link,Destination URL,Clicks,Created at,Updated at,Tags,Archived";
  writeFileSync(file, [header, ...lines].join("\n"));
  return file;
}

const run = (file: string, org: string, ...options: string[]) =>
  resultOf<Report>(["import", file, "--org", org, ...options], { settings });

const storedLinks = async (organizationId: string) =>
  Number((await knex("links").where({ organization_id: organizationId }).count({ count: "*" }))[0]?.count);

test.serial("an import that is killed leaves whole batches, and its repetition adds the rest", async (t) => {
  const ROWS = 10_000;
  const org = await createOrganization();
  const file = writeExport(ROWS);
  const words = ["import", file, "--org", org, "--json"];
  const command = startCommand(words, { settings });
  await until(async () => (await storedLinks(org)) > 0 || undefined);
  command.kill("SIGKILL");
  t.is((await command.ended).signal, "SIGKILL");
  const before = await storedLinks(org);
  t.true(before < ROWS);
  const events = await knex("events").where({ organization_id: org, type: "links.imported" });
  const recorded = events.reduce((total, { data }) => total + JSON.parse(data).imported, 0);
  t.is(recorded, before);
  const refused = ROWS / 1000;
  const rest = { imported: ROWS - refused - before, skipped: before, refused };
  t.like(await run(file, org), { format: "Dub", rows: ROWS, ...rest });
  t.like(await run(file, org), { imported: 0, skipped: ROWS - refused, refused, left: 0 });
  t.is(await storedLinks(org), ROWS - refused);
  const usage = await knex("organization_usage").where({ organization_id: org }).first();
  t.is(usage?.links, ROWS - refused);
});

test.serial("refused rows are written to a file with number and reason, by a dry run none", async (t) => {
  const org = await createOrganization();
  const file = writeExport(2000);
  const rejected = `${folder}/rejected.csv`;
  const dry = await run(file, org, "--dry-run");
  t.like(dry, { dry_run: true, imported: 1998, refused: 2 });
  t.is(await storedLinks(org), 0);
  t.deepEqual(await run(file, org, "--rejected", rejected), { ...dry, dry_run: false });
  const [header, ...lines] = parse(readFileSync(file));
  t.deepEqual(parse(readFileSync(rejected), { bom: true }), [
    ["row", "reason", ...(header as string[])],
    ["1001", "slug is reserved.", ...(lines[999] as string[])],
    ["2001", "slug is reserved.", ...(lines[1999] as string[])],
  ]);
  const again = ["import", file, "--org", org, "--rejected", rejected];
  t.regex((await refusalOf(again, { settings })).message, /exists\. Choose another name\./);
});

test.serial("a repaired row is imported with all that the file says of it", async (t) => {
  const org = await createOrganization();
  const [file, first, second] = [`${folder}/refused.json`, `${folder}/first.csv`, `${folder}/second.csv`];
  const row = {
    url: "https://www.acme.example/",
    slug: "docs",
    title: "=1+1",
    tags: ["a", "b"],
    metadata: { campaign: "spring" },
    expires_at: "2099-01-01T00:00:00Z",
    max_clicks: null,
  };
  writeFileSync(file, JSON.stringify([row]));
  const words = ["import", file, "--org", org, "--rejected", first, "--json"];
  const { code, stdout } = await runCommand(words, { settings });
  t.is(code, 1);
  t.like(JSON.parse(stdout), { imported: 0, refused: 1 });
  // Refused again, the row is the same, except for its number.
  await runCommand(["import", first, "--org", org, "--rejected", second], { settings });
  t.is(readFileSync(second, "utf8"), readFileSync(first, "utf8").replace("\n1,", "\n2,"));
  writeFileSync(second, readFileSync(first, "utf8").replace("docs", "repaired"));
  t.like(await run(second, org), { imported: 1, refused: 0 });
  const link = await knex("links").where({ slug: "repaired" }).first();
  t.like(link, { title: "=1+1", expires_at: Date.UTC(2099, 0, 1) });
  t.deepEqual(link?.tags.match(/\w+/g), ["a", "b"]);
  t.deepEqual(JSON.parse(link?.metadata ?? ""), { campaign: "spring" });
});

test.serial("a full plan stops the import with exit code 1, and says how many rows are left", async (t) => {
  const org = await createOrganization("free");
  const file = writeExport(1200);
  const { code, stdout } = await runCommand(["import", file, "--org", org, "--json"], { settings });
  t.is(code, 1);
  const stopped = { code: "quota_exceeded" };
  t.like(JSON.parse(stdout), { imported: 1000, refused: 1, left: 199, stopped });
  t.is(await storedLinks(org), 1000);
  const { stdout: text } = await runCommand(["import", file, "--org", org], { settings });
  t.regex(text, /^Already imported: 1,000\n.*\nLeft: 199\. Your plan includes 1,000 links\./m);
});

test.serial("a wrong file or option is named in one sentence, and nothing is imported", async (t) => {
  const org = await createOrganization();
  const file = `${folder}/other.csv`;
  writeFileSync(file, "name,value\na,b\n");
  const broken = `${folder}/broken.csv`; // at its end
  writeFileSync(broken, `${readFileSync(writeExport(1200), "utf8")}\n"https://go.acme.example/x`);
  const isUnknown = /Found: name, value\. Needed: linkgate \(url\)/;
  const wrong: [words: string[], code: string, message: RegExp][] = [
    [[file], "usage", /^Missing option --org <org-id>\.$/],
    [[file, "--org", "org_none"], "not_found", /^/],
    [[`${folder}/none.csv`, "--org", org], "file_not_found", /^/],
    [[folder, "--org", org], "file_not_found", / is a folder\.$/],
    [[file, "--org", org], "invalid_file", isUnknown],
    [[broken, "--org", org], "invalid_file", /^file must close every quote \(line 1202\)\.$/],
    [[settings.DATABASE_URL.slice("sqlite:".length), "--org", org], "invalid_file", /^/],
    [["/dev/null", "--org", org], "invalid_file", /is a pipe or a device\. Save the links to a file first\./],
  ];
  await Promise.all(
    wrong.map(async ([words, code, message]) => {
      const refusal = await refusalOf(["import", ...words], { settings });
      t.is(refusal.code, code);
      t.regex(refusal.message, message);
    }),
  );
  t.is(await storedLinks(org), 0);
});

testOnTerminal("an import that Ctrl-C stops says how to continue, and continues", async (t) => {
  const org = await createOrganization();
  const file = writeExport(20_000);
  const rejected = ["--rejected", `${folder}/stopped.csv`];
  const words = ["import", file, "--org", org, ...rejected];
  const { shown, code } = await commandOnTerminal(words, [["per second", "\x03"]], settings);
  t.is(code, -2, shown);
  t.regex(shown, /\[KStopped after [\d,]+ rows\. Run the command again to continue\.\r\n$/);
  const before = await storedLinks(org);
  t.like(await run(file, org, ...rejected), { imported: 19_980 - before, skipped: before });
});
