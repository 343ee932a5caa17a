import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "ava";
import { FILTER_FILE } from "../../../server/credentials/breached-passwords/is-breached.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "off" });
test.after.always(() => service.close());

/** Passwords that attackers try first, for a user `ada-…` of the organization Acme. */
const GUESSES = ["sunshine", "Password1!", "Qwerty123!", "Summer2026!", "Linkgate2026!", "Acme2026!"];
const OPERATOR = { id: "operator" };

/** Returns the token of an invitation to an organization. */
async function invite(name = "Acme"): Promise<string> {
  const { organization } = await service.storage.organizations.create(name, "free", OPERATOR);
  return (await service.storage.invitations.create(organization.id, "member", 60_000, OPERATOR)).token;
}

async function createMember() {
  const user = await service.createUser([]);
  await service.storage.invitations.accept(await invite(), { id: user.id });
  return user;
}

test("guessable passwords are rejected at registration", async (t) => {
  for (const password of GUESSES) {
    const form = { username: "guessable", password, organization_name: "Acme" };
    const answer = await postForm(`${service.url}/auth/register`, form);
    t.is(answer.status, 422, password);
    const { errors } = (await answer.json()) as { errors: { field: string }[] };
    t.deepEqual(
      errors.map(({ field }) => field),
      ["password"],
    );
  }
});

test("an invited user's password must not be made of the organization's name", async (t) => {
  // No list of breached passwords has this name.
  const form = { username: "invited", password: "Zorbvexia2026!", invitation: await invite("Zorbvexia") };
  const answer = await postForm(`${service.url}/auth/register`, form);
  t.is(answer.status, 422);
  t.regex(await answer.text(), /must not be made of the name of your organization/);
});

test("guessable passwords are rejected when a password is changed, and the old one remains", async (t) => {
  const user = await createMember();
  const api = apiAt(service.url, await firstPartyToken(service, user));
  for (const new_password of GUESSES) {
    const json = { current_password: user.password, new_password };
    t.is((await api.send("POST", "/dashboard/account/password", { json })).status, 422, new_password);
  }
  const { username, password } = user;
  t.is((await postForm(`${service.url}/auth/login`, { username, password })).status, 200);
});

test("guessable passwords are rejected by a reset link, which remains valid", async (t) => {
  const user = await createMember();
  const url = `${service.url}/auth/reset-password/${await service.storage.accounts.createResetToken(user.id, 60_000)}`;
  for (const password of GUESSES) t.is((await postForm(url, { password })).status, 422, password);
  t.is((await postForm(url, { password: "an entirely new password" })).status, 200);
});

test("the list of breached passwords is the documented one", (t) => {
  const readme = readFileSync(new URL("README.md", FILTER_FILE), "utf8");
  t.true(readme.includes(hash("sha256", readFileSync(FILTER_FILE), "hex")));
});
