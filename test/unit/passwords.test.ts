import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "ava";
import { FILTER_FILE } from "../../server/credentials/breached-passwords/is-breached.ts";
import { validatePassword } from "../../server/credentials/password-rules.ts";
import { createPasswords, type Origin, PasswordQueueFull } from "../../server/credentials/passwords.ts";

const passwords = createPasswords();
const ADA = { username: "ada.lovelace", organizations: ["Acme Corporation", "Zürich Works"] };

test("every character of a password counts, in any script and up to 128", async (t) => {
  const long = [..."пароль-密碼-🔑-Ünïcödé-".repeat(4)].slice(0, 63).join("");
  for (const [password, others] of [
    [`${long}x`, [`${long}y`, long, `${long}x `, ` ${long}x`, `${long}X`, `${long.toLowerCase()}x`]],
    [`${"é".repeat(127)}a`, [`${"é".repeat(127)}b`]],
  ] as const) {
    t.is(validatePassword(password, ADA), undefined);
    const hash = await passwords.hash(password);
    t.true(await passwords.verify(hash, password));
    for (const other of others) t.false(await passwords.verify(hash, other), other);
  }
});

test("each hash is argon2id with its own salt and the parameters of the OWASP cheat sheet", async (t) => {
  const [one, two] = [await passwords.hash("a fine password"), await passwords.hash("a fine password")];
  t.regex(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.not(one, two);
});

test("without a stored hash, no password matches", async (t) => {
  for (const password of ["", "no user has this password"]) t.false(await passwords.verify(null, password));
});

const countServed = async (calls: Promise<boolean>[]) =>
  (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled").length;

test("hashing is bounded: calls beyond the queue are rejected, and the others succeed", async (t) => {
  const own = createPasswords();
  const calls = Array.from({ length: 100 }, () => own.verify(null, "a fine password"));
  const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
  t.true(refused.length > 40 && refused.length <= 50, `${refused.length}`);
  for (const one of refused) t.true((one as PromiseRejectedResult).reason instanceof PasswordQueueFull);
  t.is(await countServed([own.verify(null, "")]), 1, "the queue has room again");
});

test("a network takes twenty places of a queue at most, and known devices have their own queue", async (t) => {
  const own = createPasswords();
  const many = (times: number, from: Origin) =>
    Array.from({ length: times }, () => own.verify(null, "a fine password", from));
  const flood = ["a", "b", "c"].flatMap((network) => many(40, { network }));
  const devices = many(60, { network: "a", isKnownDevice: true });
  const known = many(20, { network: "d", isKnownDevice: true });
  t.is(await countServed(known), 20, "many known devices on one network leave room for others");
  t.is(await countServed(devices), 20);
  t.true((await countServed(flood)) < 60);
  t.is(await countServed([...many(40, { network: "a" }), ...many(10, { network: "b" })]), 30);
});

const ACCEPTED = [
  ...["onlylowercaseletters", "ONLYCAPITALLETTERS", "8275619340", "        spaces        "],
  ...["correct horse battery staple", "wwwwwwwwwwwwwwwq", "🔑".repeat(128)],
  ...["acme needs 3 more horses", "ada likes long evenings", "linkgate-7391-pv"],
];
const madeOf = (name: string) => new RegExp(`^The password must not be based on ${name}\\.$`);

const BREACHED = "password PASSWORD Password1! 12345678 qwertyuiop sunshine letmein123 ｉｌｏｖｅｙｏｕ";
const SERVICE = "linkgate LinkGate linkgate123 L1nkg4te2026! etagknil linkgatelinkgate";
const REFUSED: [what: RegExp, passwords: string][] = [
  [madeOf("the name of this service"), SERVICE],
  [madeOf("your username"), "ada.lovelace Ada.Lovelace1815 adalovelace! Lovelace2026! l0vel4ce#1"],
  [madeOf("the name of your organization"), "Acme2026! acmeacme AcmeCorporation1 corporation Zürich2026"],
  [/appears in lists of breached passwords/, BREACHED],
  [/differs from a breached one/, "Qwerty123! Summer2026! Dr4gon#99 $unsh1ne Pr1nce55! monkey.2026"],
];

test("a password has 8 to 128 characters", (t) => {
  for (const password of ["", "1234567", "🔑🔑🔑🔑", "🔑".repeat(7), "x".repeat(129)])
    t.regex(validatePassword(password, ADA) ?? "", /8 to 128 characters/, password);
});

test("there are no composition rules, and a password may contain a name among other characters", (t) => {
  for (const password of ACCEPTED) t.is(validatePassword(password, ADA), undefined, password);
});

test("a breached password or a name is refused in any case and with a few other characters", (t) => {
  for (const [what, passwords] of REFUSED)
    for (const password of passwords.split(" "))
      t.regex(validatePassword(password, ADA) ?? "", what, password);
});

test("no random password is mistaken for a breached one", (t) => {
  for (let index = 0; index < 20_000; index++) {
    const password = hash("sha256", `${index}`, "base64url").slice(0, 16);
    if (validatePassword(password, ADA) !== undefined) t.fail(password);
  }
  t.pass();
});

test("the list of breached passwords is the documented one", (t) => {
  const readme = readFileSync(new URL("README.md", FILTER_FILE), "utf8");
  t.true(readme.includes(hash("sha256", readFileSync(FILTER_FILE), "hex")));
});
