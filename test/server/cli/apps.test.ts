import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { MAX_APPROVED_APPS } from "../../../adapters/organizations/approved-apps.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-apps-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
/** Runs a command; returns its result, or its error. */
async function run(...words: string[]) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings });
  return JSON.parse(code === 0 ? stdout : stderr);
}

const { organization } = await run("org", "create", "Acme", "--plan", "growth");
const { id } = organization;
const storage = openStorage(settings.DATABASE_URL, randomBytes(32));
test.after.always(() => storage.close());
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

test.serial("an app is approved, listed, and its approval withdrawn", async (t) => {
  t.deepEqual(await run("org", "member-apps", id, "approved"), { organization, member_apps: "approved" });
  t.is((await storage.appPolicies.find(id))?.memberApps, "approved");
  const { client } = await run("org", "create", "Reports", "--plan", "growth");
  const { approved_app: app } = await run("app", "approve", id, client.client_id);
  t.like(app, { client_id: client.client_id, app: "Reports", published_by: null, approved_by: "operator" });
  t.deepEqual(await run("app", "list", id), { approved_apps: [app] });
  t.deepEqual(await run("app", "withdraw", id, app.id), { withdrawn: app.id });
  t.deepEqual(await run("app", "list", id), { approved_apps: [] });
});

test.serial("what can't be approved is refused with the reason", async (t) => {
  t.like((await run("app", "approve", id, "lgc_unknown")).error, { code: "not_found" });
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
