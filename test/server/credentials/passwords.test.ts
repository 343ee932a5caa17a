import test from "ava";
import { Busy, createPasswords, refusePassword } from "../../server/passwords.ts";

const passwords = createPasswords();

// Sixty-three characters of several scripts.
const LONG = [..."пароль-密碼-🔑-Ünïcödé-".repeat(4)].slice(0, 63).join("");

test("sec 107: 64 characters of any script count to the last one", async (t) => {
  const password = `${LONG}x`;
  t.is([...password].length, 64);
  t.is(refusePassword(password, "ada"), undefined);
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

test("sec 107: 128 characters are not cut short anywhere", async (t) => {
  const password = "é".repeat(127);
  t.is(refusePassword(`${password}a`, "ada"), undefined);
  t.is(refusePassword("🔑".repeat(128), "ada"), undefined);
  const hash = await passwords.hash(`${password}a`);
  t.false(await passwords.verify(hash, `${password}b`));
});

test("sec 107: fewer than 8 or more than 128 characters are refused, counted as people count", (t) => {
  for (const password of ["", "1234567", "🔑🔑🔑🔑", "🔑".repeat(7), "x".repeat(129)]) {
    t.regex(refusePassword(password, "ada") ?? "", /8 to 128 characters/, password);
  }
});

test("sec 107: no rule of composition", (t) => {
  for (const password of [
    "onlylowercaseletters",
    "ONLYCAPITALLETTERS",
    "8275619340",
    "        spaces        ",
    "correct horse battery staple",
    "wwwwwwwwwwwwwwwq",
  ]) {
    t.is(refusePassword(password, "ada"), undefined, password);
  }
});

test("sec 108: common passwords and words of this place are refused, in any case", (t) => {
  for (const password of [
    "password",
    "Password",
    "PASSWORD123",
    "password1",
    "12345678",
    "123456789",
    "qwertyuiop",
    "iloveyou",
    "sunshine",
    "linkgate",
    "LinkGate",
    "linkgate123",
    "ada.lovelace",
    "Ada.Lovelace",
    "ada.lovelace123",
  ]) {
    t.truthy(refusePassword(password, "ada.lovelace"), password);
  }
});

test("sec 107: each hash is argon2id with a salt of its own, at the strength of the OWASP cheat sheet", async (t) => {
  const [one, two] = await Promise.all([
    passwords.hash("a fine password"),
    passwords.hash("a fine password"),
  ]);
  t.regex(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.not(one, two);
});

test("sec 110: without a stored hash nothing is right", async (t) => {
  for (const password of ["", "nobody has this password"]) t.false(await passwords.verify(null, password));
});

test("sec 111: hashing is bounded: beyond a queue callers are told to come back, and the others are served", async (t) => {
  const own = createPasswords();
  const hash = await own.hash("a fine password");
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, () => own.verify(hash, "a fine password")),
  );
  const served = results.filter(({ status }) => status === "fulfilled");
  const refused = results.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  t.true(served.length >= 50 && served.length < 60, `${served.length}`);
  for (const { reason } of refused) t.true(reason instanceof Busy);
  t.true(await own.verify(hash, "a fine password"), "and then it is open again");
});
