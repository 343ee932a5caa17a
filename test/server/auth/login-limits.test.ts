import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createVerifyPassword } from "../../../server/auth/verify-password.ts";
import { createPasswords } from "../../../server/credentials/passwords.ts";
import { createLog } from "../../../server/log.ts";
import { createAuthenticationLimits } from "../../../server/rate-limits/authentication.ts";
import { createRateLimitStore } from "../../../server/rate-limits/store.ts";
import { authorizeUrl, createApp } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: Buffer.alloc(32, 6).toString("base64url"),
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
});
const knex = knexFactory(knexConfig(database.url));
const { app, own, user } = await createApp(service);
test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

let last = 0;

/** A browser with its own IP address, chosen by the number of a network. */
class Visitor extends TestBrowser {
  readonly #address: string;
  constructor(network = ++last) {
    super(service.url);
    this.#address = `203.0.${network}.${1 + (network % 250)}`;
  }
  override open(url: string, init: RequestInit = {}): Promise<Page> {
    return super.open(url, { ...init, headers: { ...init.headers, "x-forwarded-for": this.#address } });
  }
}

async function attempt(username: string, password: string, visitor = new Visitor()): Promise<Page> {
  const page = await visitor.open(authorizeUrl(service, app));
  return visitor.press(page, "Sign in", { username, password });
}

const isIn = (page: Page) => page.text.includes("Allow access?");

/** Returns a page without the parts that differ between requests. */
function normalized({ status, text }: Page, username: string): string {
  return `${status} ${text}`
    .replaceAll(username, "NAME")
    .replace(/value="[\w-]{43}"/, "CSRF")
    .replace(/action="[^"]*"/, "ACTION")
    .replace(/data-options="[^"]*"/, "OPTIONS")
    .replace(/(?<=name="return_to" value=")[^"]*/, "RETURN_TO");
}

async function createDisabled() {
  const disabled = await service.createUser([own.id]);
  await knex("users").where({ id: disabled.id }).update({ disabled_at: Date.now() });
  return disabled;
}

async function createExternal() {
  const external = await service.createUser([own.id]);
  await knex("users").where({ id: external.id }).update({ password_hash: null });
  return external;
}

test.serial(
  "the sign-in page accepts passwords of 64 characters in any script, and compares every character",
  async (t) => {
    const password = `${"пароль密碼🔑é".repeat(8).slice(0, 66)} x`;
    const hash = await createPasswords().hash(password);
    await service.storage.accounts.create("unicode", hash, OPERATOR, {
      organizationId: own.id,
      role: "member",
    });
    t.true(isIn(await attempt("unicode", password)));
    for (const wrong of [
      `${password.slice(0, -1)}y`,
      password.slice(0, -1),
      `${password} `,
      ` ${password}`,
    ]) {
      t.false(isIn(await attempt("unicode", wrong)), wrong);
    }
  },
);

test.serial("unknown, disabled and SSO-only users and wrong passwords get the same response", async (t) => {
  const disabled = await createDisabled();
  const external = await createExternal();
  const wrong = normalized(await attempt(user.username, "not the password"), user.username);
  t.regex(wrong, /^400 /);
  for (const [name, username, password] of [
    ["unknown", "no-such-user", "not the password"],
    ["disabled", disabled.username, disabled.password],
    ["SSO-only", external.username, ""],
    ["SSO-only with a password", external.username, external.password],
    ["empty", user.username, ""],
  ] as const) {
    t.is(normalized(await attempt(username, password), username), wrong, name);
  }
});

test.serial("each of them costs one password verification", async (t) => {
  const real = createPasswords();
  let checks = 0;
  const counting = {
    ...real,
    verify(...given: Parameters<typeof real.verify>) {
      checks++;
      return real.verify(...given);
    },
  };
  const off = { RATE_LIMIT: false, REDIS_URL: undefined };
  const rateLimitStore = await createRateLimitStore(off, createLog("silent"));
  const { signIn: limits } = createAuthenticationLimits(rateLimitStore);
  const devices = { tokenOf: () => undefined };
  const signIn = createVerifyPassword({
    ...service.storage,
    devices,
    passwords: counting,
    limits,
    isLimited: false,
  });
  const ctx = { ip: "203.0.113.1", set() {} } as unknown as Parameters<typeof signIn>[0];
  const usernames = [
    user.username,
    "no-such-user",
    (await createDisabled()).username,
    (await createExternal()).username,
  ];
  for (const username of usernames) {
    checks = 0;
    await t.throwsAsync(signIn(ctx, username, "not the password"), { code: "invalid_credentials" });
    t.is(checks, 1, username);
  }
});

test.serial(
  "after five wrong passwords the page says when to retry, and another IP address can still sign in",
  async (t) => {
    const guesser = new Visitor();
    for (let count = 0; count < 5; count++) {
      t.is((await attempt(user.username, `guess number ${count}`, guesser)).status, 400);
    }
    for (const password of ["guess number 6", user.password]) {
      const page = await attempt(user.username, password, guesser);
      t.is(page.status, 429);
      const seconds = Number(page.headers.get("retry-after"));
      t.true(seconds > 0 && seconds <= 60);
      t.true(page.text.includes(`Try again in ${seconds} seconds.`));
      t.truthy(page.html.querySelector("#password"), "the form is shown");
    }
    t.true(isIn(await attempt(user.username, user.password)), "the account is not locked");
    advanceClock(61_000);
    t.true(isIn(await attempt(user.username, user.password, guesser)), "allowed again after a minute");
  },
);

test.serial("other spellings of a username share its limit", async (t) => {
  const guesser = new Visitor();
  const name = "guessed";
  const spellings = [name, "GUESSED", "Guessed", "ｇｕｅｓｓｅｄ", "ｇuessed"];
  for (const spelling of spellings) t.is((await attempt(spelling, "wrong password", guesser)).status, 400);
  for (const spelling of ["gUESSED", "guesseｄ"]) {
    t.is((await attempt(spelling, "wrong password", guesser)).status, 429, spelling);
  }
});

test.serial("thirty concurrent guesses get no further than sequential ones", async (t) => {
  const user = await service.createUser([own.id]);
  const guesser = new Visitor();
  const visits = Array.from({ length: 30 }, (_, count) => attempt(user.username, `guess ${count}`, guesser));
  const statuses = (await Promise.all(visits)).map(({ status }) => status);
  // Only the cookie of the last page is valid; the others have to start again.
  t.true(
    statuses.every((status) => [400, 429].includes(status)),
    String(statuses),
  );

  const page = await guesser.open(authorizeUrl(service, app));
  const target = await service.createUser([own.id]);
  const fields = { username: target.username, password: "wrong password" };
  const raced = await Promise.all(Array.from({ length: 30 }, () => guesser.press(page, "Sign in", fields)));
  t.is(raced.filter(({ status }) => status === 400).length, 5);
  t.is(raced.filter(({ status }) => status === 429).length, 25);
  t.true(
    isIn(await attempt(target.username, target.password)),
    "the user can sign in from another IP address",
  );
});

test.serial("an IP address that tries many usernames is limited, together with its network", async (t) => {
  advanceClock(61_000);
  const network = ++last;
  const statuses = [];
  for (let count = 0; count < 52; count++) {
    statuses.push((await attempt(`user${count}`, "wrong password", new Visitor(network))).status);
  }
  t.deepEqual([...new Set(statuses.slice(0, 50))], [400]);
  t.deepEqual(statuses.slice(50), [429, 429]);
});

test.serial("successful sign-ins don't count towards the limit", async (t) => {
  const visitor = new Visitor();
  for (let count = 0; count < 12; count++) {
    t.true(isIn(await attempt(user.username, user.password, visitor)), `${count}`);
    await visitor.jar.removeAllCookies();
  }
});
