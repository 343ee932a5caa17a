import test from "ava";
import {
  createPasswords,
  PasswordQueueFull,
  validatePassword,
} from "../../../server/credentials/passwords.ts";

const passwords = createPasswords();

// 63 characters of several scripts.
const LONG = [..."пароль-密碼-🔑-Ünïcödé-".repeat(4)].slice(0, 63).join("");

test("passwords of 64 characters in any script are compared completely", async (t) => {
  const password = `${LONG}x`;
  t.is([...password].length, 64);
  t.is(validatePassword(password, "ada"), undefined);
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
  t.is(validatePassword(`${password}a`, "ada"), undefined);
  t.is(validatePassword("🔑".repeat(128), "ada"), undefined);
  const hash = await passwords.hash(`${password}a`);
  t.false(await passwords.verify(hash, `${password}b`));
});

test("passwords with fewer than 8 or more than 128 code points are rejected", (t) => {
  for (const password of ["", "1234567", "🔑🔑🔑🔑", "🔑".repeat(7), "x".repeat(129)]) {
    t.regex(validatePassword(password, "ada") ?? "", /8 to 128 characters/, password);
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
    t.is(validatePassword(password, "ada"), undefined, password);
  }
});

test("common passwords and the name of the service are rejected, in any case", (t) => {
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
    t.truthy(validatePassword(password, "ada.lovelace"), password);
  }
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
