import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "ava";
import { FILTER_FILE } from "../../../server/credentials/breached-passwords/is-breached.ts";
import { validatePassword } from "../../../server/credentials/password-rules.ts";
import { createPasswords, type Origin, PasswordQueueFull } from "../../../server/credentials/passwords.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "off" });

test.after.always(() => service.close());

const passwords = createPasswords();
const ADA = { username: "ada" };

// 63 characters of several scripts.
const LONG = [..."пароль-密碼-🔑-Ünïcödé-".repeat(4)].slice(0, 63).join("");

test("passwords of 64 characters in any script are compared completely", async (t) => {
  const password = `${LONG}x`;
  t.is([...password].length, 64);
  t.is(validatePassword(password, ADA), undefined);
  const hash = await passwords.hash(password);
  t.true(await passwords.verify(hash, password));
  for (const other of [
    `${LONG}y`,
    LONG,
    `${password} `,
    ` ${password}`,
    password.toUpperCase(),
    password.toLowerCase(),
  ]) {
    t.false(await passwords.verify(hash, other), other);
  }
});

test("passwords of 128 characters are not truncated", async (t) => {
  const password = "é".repeat(127);
  t.is(validatePassword(`${password}a`, ADA), undefined);
  t.is(validatePassword("🔑".repeat(128), ADA), undefined);
  const hash = await passwords.hash(`${password}a`);
  t.false(await passwords.verify(hash, `${password}b`));
});

test("each hash is argon2id with its own salt and the parameters of the OWASP cheat sheet", async (t) => {
  const [one, two] = await Promise.all([
    passwords.hash("a fine password"),
    passwords.hash("a fine password"),
  ]);
  t.regex(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.not(one, two);
});

test("without a stored hash, no password matches", async (t) => {
  for (const password of ["", "no user has this password"]) t.false(await passwords.verify(null, password));
});

test("hashing is bounded: calls beyond the queue are rejected, and the others succeed", async (t) => {
  const own = createPasswords();
  const hash = await own.hash("a fine password");
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, () => own.verify(hash, "a fine password")),
  );
  const served = results.filter(({ status }) => status === "fulfilled");
  const refused = results.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  t.true(served.length >= 50 && served.length < 60, `${served.length}`);
  for (const { reason } of refused) t.true(reason instanceof PasswordQueueFull);
  t.true(await own.verify(hash, "a fine password"), "the queue has room again");
});

test("a network takes twenty places of a queue at most, and known devices have their own queue", async (t) => {
  const own = createPasswords();
  const hash = await own.hash("a fine password");
  const verify = (from: Origin) => own.verify(hash, "a fine password", from);
  const countServed = async (calls: Promise<boolean>[]) =>
    (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled").length;
  const many = (times: number, from: Origin) => Array.from({ length: times }, () => verify(from));

  const flood = [...many(40, { network: "a" }), ...many(40, { network: "b" }), ...many(40, { network: "c" })];
  const devices = many(60, { network: "a", isKnownDevice: true });
  const known = many(20, { network: "d", isKnownDevice: true });
  t.is(await countServed(known), 20, "many known devices on one network leave room for others");
  t.is(await countServed(devices), 20);
  t.true((await countServed(flood)) < 60);
  t.is(await countServed([...many(40, { network: "a" }), ...many(10, { network: "b" })]), 30);
});

const ADA_LOVELACE = { username: "ada.lovelace", organizations: ["Acme Corporation", "Zürich Works"] };

test("passwords with fewer than 8 or more than 128 code points are rejected", (t) => {
  for (const password of ["", "1234567", "🔑🔑🔑🔑", "🔑".repeat(7), "x".repeat(129)]) {
    t.regex(validatePassword(password, ADA_LOVELACE) ?? "", /8 to 128 characters/, password);
  }
});

test("there are no composition rules", (t) => {
  for (const password of [
    "onlylowercaseletters",
    "ONLYCAPITALLETTERS",
    "8275619340",
    "        spaces        ",
    "correct horse battery staple",
    "wwwwwwwwwwwwwwwq",
  ]) {
    t.is(validatePassword(password, ADA_LOVELACE), undefined, password);
  }
});

const NAMES: Record<string, string[]> = {
  "the name of this service": [
    "linkgate",
    "LinkGate",
    "linkgate123",
    "L1nkg4te2026!",
    "etagknil",
    "linkgatelinkgate",
  ],
  "your username": ["ada.lovelace", "Ada.Lovelace1815", "adalovelace!", "Lovelace2026!", "l0vel4ce#1"],
  "the name of your organization": ["Acme2026!", "acmeacme", "AcmeCorporation1", "corporation", "Zürich2026"],
};

for (const [name, passwords] of Object.entries(NAMES)) {
  test(`a password made of ${name} is rejected in any case and with a few other characters`, (t) => {
    for (const password of passwords) {
      t.is(validatePassword(password, ADA_LOVELACE), `The password must not be made of ${name}.`, password);
    }
  });
}

test("a password may contain a name among enough other characters", (t) => {
  for (const password of ["acme needs 3 more horses", "ada likes long evenings", "linkgate-7391-pv"]) {
    t.is(validatePassword(password, ADA_LOVELACE), undefined, password);
  }
});

test("breached passwords are rejected in any case", (t) => {
  for (const password of [
    "ｉｌｏｖｅｙｏｕ",
    "password",
    "PASSWORD",
    "Password1!",
    "12345678",
    "qwertyuiop",
    "sunshine",
    "letmein123",
  ]) {
    t.regex(
      validatePassword(password, ADA_LOVELACE) ?? "",
      /appears in lists of breached passwords/,
      password,
    );
  }
});

test("breached passwords with a few digits, symbols or lookalikes are rejected", (t) => {
  for (const password of ["Qwerty123!", "Summer2026!", "Dr4gon#99", "$unsh1ne", "Pr1nce55!", "monkey.2026"]) {
    t.regex(validatePassword(password, ADA_LOVELACE) ?? "", /differs from a breached one/, password);
  }
});

test("no random password is mistaken for a breached one", (t) => {
  const passwords = Array.from({ length: 100_000 }, (_, index) =>
    hash("sha256", `${index}`, "base64url").slice(0, 16),
  );
  t.deepEqual(
    passwords.filter((password) => validatePassword(password, ADA_LOVELACE)),
    [],
  );
});

/** Passwords that attackers try first, for a user `ada-…` of the organization Acme. */
const GUESSES = ["sunshine", "Password1!", "Qwerty123!", "Summer2026!", "Linkgate2026!", "Acme2026!"];
const OPERATOR = { id: "operator" };

/** Returns the token of an invitation to an organization. */
async function invite(name = "Acme"): Promise<string> {
  const { organization } = await service.storage.organizations.create(name, "free", OPERATOR);
  return (
    await service.storage.invitations.create({
      organizationId: organization.id,
      role: "member",
      lifetimeMs: 60_000,
      actor: OPERATOR,
    })
  ).token;
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
