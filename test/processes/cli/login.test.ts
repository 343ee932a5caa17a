import { mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { refusalOf, resultOf, runCommand, startCommand } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "admin");

function newPerson() {
  const home = mkdtempSync(path.join(tmpdir(), "linkgate-login-"));
  return { settings: { XDG_CONFIG_HOME: home }, file: path.join(home, "linkgate", "login.json") };
}

async function signIn(t: ExecutionContext, decision: "Allow" | "Cancel" = "Allow") {
  const person = newPerson();
  const program = startCommand(["login", service.url], { settings: person.settings });
  const [, address = ""] = await program.says(/^Open (\S+)$/m);
  const [, code] = await program.says(/the page shows the code ([A-Z-]{9})\.$/m);
  const { browser } = await browserOf(service, user);
  const form = await browser.open(address);
  t.is(form.html.querySelector("#user_code")?.attributes.value, code);
  const consent = await browser.submit(form, {});
  t.true(consent.text.includes("linkgate CLI"));
  await browser.press(consent, decision);
  return { ...person, ending: await program.ended };
}

test("a person signs in, works with links, and signs out", async (t) => {
  const { settings, file, ending } = await signIn(t);
  t.is(ending.code, 0, ending.stderr);
  t.true(ending.stdout.endsWith(`Signed in to ${service.url}.\n`));
  t.is(statSync(file).mode & 0o777, 0o600);
  t.is(statSync(path.dirname(file)).mode & 0o777, 0o700);
  t.deepEqual(readdirSync(path.dirname(file)), ["login.json"]);
  t.deepEqual(await resultOf(["whoami"], { settings }), {
    server: service.url,
    username: user.username,
    organization: { id: organization.id, name: organization.name, role: "admin" },
  });
  const words = ["https://example.com/spring", "--slug", "spring", "--tags", "mail", "sale"];
  const made = await resultOf<Link>(["links", "create", ...words, "--max-clicks", "5"], { settings });
  t.like(made, { slug: "spring", tags: ["mail", "sale"], max_clicks: 5 });
  const changed = ["links", "update", made.id, "--title", "Spring", "--max-clicks", ""];
  t.like(await resultOf<Link>(changed, { settings }), { title: "Spring", max_clicks: null });
  const { data } = await resultOf<{ data: Link[] }>(["links", "list", "--search", "spring"], { settings });
  t.deepEqual(
    data.map(({ id }) => id),
    [made.id],
  );
  t.deepEqual(await resultOf(["links", "delete", made.id], { settings }), { id: made.id, deleted: true });
  t.is((await refusalOf(["links", "get", made.id], { settings })).code, "not_found");
  const { accessToken } = JSON.parse(
    await import("node:fs/promises").then(({ readFile }) => readFile(file, "utf8")),
  );
  t.true(await isAcceptedByApi(service, accessToken));
  t.is((await runCommand(["logout"], { settings })).code, 0);
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refusalOf(["whoami"], { settings })).code, "not_signed_in");
});

type Link = { id: string; slug: string };

test("a person who denies access isn't signed in", async (t) => {
  const { settings, ending } = await signIn(t, "Cancel");
  t.is(ending.code, 1);
  t.regex(ending.stderr, /The access was denied\./);
  t.is((await refusalOf(["links", "list"], { settings })).code, "not_signed_in");
});

test("what the API refuses is named by field", async (t) => {
  const { settings } = await signIn(t);
  const refusal = await refusalOf(["links", "create", "ftp://example.com"], { settings });
  t.is(refusal.code, "invalid_url");
  t.regex(refusal.message, /\nurl must/);
  const notJson = await refusalOf(["links", "create", "https://example.com/", "--metadata", "x"], {
    settings,
  });
  t.deepEqual(notJson, { code: "invalid_option", message: "--metadata must be JSON." });
});

test.serial("an access token is renewed before it expires", async (t) => {
  const { settings, file } = await signIn(t);
  const { readFile, writeFile } = await import("node:fs/promises");
  const before = JSON.parse(await readFile(file, "utf8"));
  await writeFile(file, JSON.stringify({ ...before, expiresAt: 0 }));
  t.is((await resultOf<{ username: string }>(["whoami"], { settings })).username, user.username);
  const after = JSON.parse(await readFile(file, "utf8"));
  t.not(after.accessToken, before.accessToken);
  t.not(after.refreshToken, before.refreshToken);
});

test("a server that can't be reached, or has no device grant, is named", async (t) => {
  const { settings } = newPerson();
  t.is((await refusalOf(["login", "nowhere"], { settings })).code, "invalid_server");
  const without = await startTestService({ DEVICE_GRANT: "off" });
  t.is((await refusalOf(["login", without.url], { settings })).code, "unsupported");
});
