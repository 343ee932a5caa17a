import test from "ava";
import { type Origin, PasswordQueueFull } from "../../../server/credentials/hash-queue.ts";
import { validatePassword } from "../../../server/credentials/password-rules.ts";
import { createPasswords } from "../../../server/credentials/passwords.ts";

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
