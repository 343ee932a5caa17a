import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { ROOT } from "../../../harness/program.ts";
import { startTestService, type TestOrganization } from "../../../harness/service.ts";

const service = await startTestService();
const folder = mkdtempSync(path.join(tmpdir(), "linkgate-audit-"));

type Head = { seq: number; hash: string };
type Log = { data: { seq: number; hash: string; previous_hash: string; record: string }[]; head: Head };

/** Runs the published script on an export. Resolves to its exit code and output. */
function verify(csv: string, ...hash: string[]): Promise<{ code: number; text: string }> {
  const file = path.join(folder, `${Math.random()}.csv`);
  writeFileSync(file, csv);
  const script = path.join(ROOT, "docs/verify-audit-log.mjs");
  return new Promise((resolve) =>
    execFile(process.execPath, [script, file, ...hash], (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr }),
    ),
  );
}

const team = await createTeam(service, "free");
const { id } = team.organization;
const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
const api = apiAt(service.url, await service.token({ id, name: "", ...change?.client } as TestOrganization));
const { id: linkId } = await api.createLink({
  title: '=1+1 "quoted", with a comma',
  tags: ["one", "two"],
  metadata: { snake_case: 1, camelCase: null, text: "ü" },
  expires_at: "2030-01-01T00:00:00Z",
});
await api.send("PATCH", `/v1/links/${linkId}`, { json: { title: "-2" } });
for (const name of ["=A1", "'quoted", "+1"])
  await team.owner.api.send("PATCH", team.base, { json: { name } });
const csv = (await team.owner.api.get(`${team.base}/audit.csv`)).text;
test.after.always(() => service.close());
test.after.always(() => rmSync(folder, { recursive: true }));

test("an export is proven offline, and contains the hash that the page showed", async (t) => {
  const { browser } = await browserOf(service, team.owner);
  const page = await browser.open(`${service.url}${team.base}/audit`);
  const { head, data } = (await team.owner.api.get<Log>(`${team.base}/audit?limit=100`)).body;
  t.true(page.text.includes("Proof of completeness"));
  t.is(data[0]?.hash, head.hash);
  for (const [index, entry] of data.entries()) {
    t.is(entry.seq, head.seq - index);
    t.is(entry.previous_hash, data[index + 1]?.hash ?? "0".repeat(64));
  }
  const later = (await team.owner.api.get(`${team.base}/audit.csv`)).text;
  const { code, text } = await verify(later, head.hash);
  t.is(code, 0, text);
  t.regex(text, /Entries 1 to \d+ are unchanged/);
  t.is((await verify(csv, head.hash)).code, 1, "this export was made before");
});

test("an export is itself recorded", async (t) => {
  await team.owner.api.get(`${team.base}/audit.csv?type=plan.changed&from=2020-01-01`);
  const [entry] = await service.storage.audit.list(id, { types: ["audit_log.exported"] }, 1);
  t.like(entry, {
    actor: team.owner.id,
    data: { types: ["plan.changed"], from: "2020-01-01T00:00:00.000Z" },
  });
});

const lines = (text: string) => text.trim().split("\n").length;

const TAMPERING: Record<string, (text: string) => string> = {
  "a changed actor": (text) => text.replace(/^([^,]*),usr_[^,]*/m, "$1,usr_other"),
  "another actor in every line and record": (text) => text.replaceAll(team.owner.id, "usr_other"),
  "a changed time": (text) => text.replace(/^20\d\d-/m, "1999-"),
  "a changed type": (text) => text.replace(",link.created,", ",link.deleted,"),
  "changed data": (text) => text.replace('""to"":""growth""', '""to"":""premium""'),
  "changed data of a link": (text) => text.replace('""redirect_type"":302', '""redirect_type"":301'),
  "a changed record": (text) => text.replace('""seq"":3', '""seq"":4'),
  "a deleted line": (text) => text.replace(/^.*,plan\.changed,.*\n/m, ""),
  "a line that is there twice": (text) => text.replace(/^(.*,plan\.changed,.*\n)/m, "$1$1"),
};

for (const [what, tamper] of Object.entries(TAMPERING)) {
  test(`an export with ${what} is rejected`, async (t) => {
    t.is((await verify(csv)).code, 0);
    const tampered = tamper(csv);
    t.not(tampered, csv);
    t.true(lines(tampered) > 5);
    t.is((await verify(tampered)).code, 1);
  });
}
