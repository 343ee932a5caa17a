import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { MAX_APPROVED_APPS } from "../../../adapters/organizations/approved-apps.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-trust-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite`, BASE_URL: "https://links.example" };

const { organization } = await run("org", "create", "Acme", "--plan", "growth");

test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));
test.after.always(() => storage.close());

/** Runs a command; returns its result, or its error. */
async function run(...words: string[]) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings });
  return code === 0 ? JSON.parse(stdout) : JSON.parse(stderr);
}
const { id } = organization;

const SUBJECT = "repo:octo-org@65/octo-repo@74:ref:refs/heads/main";
const RULE = [
  ...["--name", "Deploy", "--issuer", "https://token.actions.githubusercontent.com"],
  ...["--subject", SUBJECT, "--scope", "links:write webhooks:read"],
];

test.serial("a trust rule is added, listed and removed", async (t) => {
  const claims = ["--claim", "repository_owner_id=65", "--claim", "ref=a=b"];
  const { trust_rule: rule } = await run("trust", "add", id, ...RULE, ...claims);
  const { id: ruleId, created_at, ...rest } = rule;
  t.deepEqual(rest, {
    name: "Deploy",
    issuer: "https://token.actions.githubusercontent.com",
    subject: SUBJECT,
    audience: "https://links.example",
    claims: { repository_owner_id: "65", ref: "a=b" },
    scopes: ["links:write", "webhooks:read"],
    created_by: "operator",
    last_used_at: null,
  });
  t.regex(created_at, /Z$/);
  t.deepEqual(await run("trust", "list", id), { trust_rules: [rule] });
  t.deepEqual(await run("trust", "remove", id, ruleId), { removed: ruleId });
  t.deepEqual(await run("trust", "list", id), { trust_rules: [] });
  t.like((await run("trust", "remove", id, ruleId)).error, { code: "not_found" });
});

test.serial("a rule is printed as text", async (t) => {
  const added = await runCommand(["trust", "add", id, ...RULE, "--audience", "another"], { settings });
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, /^trust_rule:\n {2}id: trs_/);
  t.regex(added.stdout, /^ {2}audience: another$/m);
  t.regex(added.stdout, /^ {2}claims: none$/m);
  t.regex(added.stdout, /^ {2}scopes:\n {4}- links:write\n {4}- webhooks:read$/m);
});

const REFUSED: [what: string, words: string[], code: string, message: RegExp][] = [
  ["a bare *", ["--subject", "*"], "invalid_subject", /^--subject must name a subject; /],
  ["http", ["--issuer", "http://issuer.example"], "invalid_issuer", /^--issuer must be an https URL\.$/],
  ["an unknown scope", ["--scope", "links:write admin"], "invalid_scopes", /^--scope must be a list of /],
  ["no scope", ["--scope", ""], "invalid_scopes", /^--scope must be a list of /],
  ["a claim without a value", ["--claim", "ref"], "invalid_claims", /^--claim ref must have a value /],
  [
    "an empty audience",
    ["--audience", ""],
    "invalid_audience",
    /^--audience must be 1 to 255 characters long\.$/,
  ],
];

for (const [what, words, code, message] of REFUSED) {
  test.serial(`a rule with ${what} is refused`, async (t) => {
    const { error } = await run("trust", "add", id, ...RULE, ...words);
    t.is(error.code, code);
    t.regex(error.message, message);
  });
}

test.serial("every missing option is named", async (t) => {
  const { error } = await run("trust", "add", id);
  t.is(error.code, "invalid_request");
  t.deepEqual(error.message.split("\n").sort(), [
    "Missing option --issuer <url>.",
    "Missing option --name <name>.",
    "Missing option --scope <scopes>.",
    "Missing option --subject <subject>.",
  ]);
});

for (const words of [["list"], ["add", ...RULE], ["remove", "trs_1"]]) {
  test.serial(`trust ${words[0]} refuses an unknown organization`, async (t) => {
    const [verb = "", ...rest] = words;
    t.like((await run("trust", verb, "org_unknown", ...rest)).error, { code: "not_found" });
  });
}

const storage = openStorage(settings.DATABASE_URL, randomBytes(32));

test.serial("an app is approved, listed, and its approval withdrawn", async (t) => {
  t.deepEqual(await run("org", "member-apps", id, "approved"), { organization, member_apps: "approved" });
  t.is((await storage.organizationSettings.find(id))?.memberApps, "approved");
  const { client } = await run("org", "create", "Reports", "--plan", "growth");
  const { approved_app: app } = await run("app", "approve", id, client.client_id);
  t.like(app, { client_id: client.client_id, app: "Reports", published_by: null, approved_by: "operator" });
  t.deepEqual(await run("app", "list", id), { approved_apps: [app] });
  t.deepEqual(await run("app", "withdraw", id, app.id), { withdrawn: app.id });
  t.deepEqual(await run("app", "list", id), { approved_apps: [] });
});

test.serial("what can't be approved is refused with the reason", async (t) => {
  t.like((await run("app", "approve", id, "lgc_unknown")).error, { code: "invalid_client_id" });
  t.like((await run("app", "withdraw", id, "app_unknown")).error, { code: "not_found" });
  t.like((await run("org", "member-apps", id, "some")).error, { code: "invalid_member_apps" });
});

test.serial("an app beyond the limit can't be approved", async (t) => {
  const { organization: full } = await run("org", "create", "Full", "--plan", "growth");
  for (let index = 0; index < MAX_APPROVED_APPS; index++) {
    await storage.approvedApps.approve(full.id, `https://app.example.com/${index}`, OPERATOR);
  }
  const { client } = await run("org", "create", "Beyond", "--plan", "growth");
  const { error } = await run("app", "approve", full.id, client.client_id);
  t.is(error?.code, "approved_app_limit");
});
