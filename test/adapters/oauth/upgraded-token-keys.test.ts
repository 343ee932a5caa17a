import test, { type ExecutionContext } from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  createApp,
  isAcceptedByApi,
  postAsClient,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { stopPrograms } from "../../harness/program.ts";
import { startPreviousRelease } from "../../harness/two-versions.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
// Users are asked again, so that no consent ends before the refresh tokens that follow from it.
const FRESH = { changes: { prompt: "consent" } };

// The previous release issues tokens, and two servers of this one take over its database.
const versions = await startPreviousRelease();
const { both, old } = versions;
const { app, user } = await createApp(both);
const flow = () => runCodeFlow(both, app, user, FRESH);
const before = { token: await old.token(app), used: await flow(), replayed: await flow() };
const [first, second] = await versions.replaceInProcess();
const servers = [first, second];
const { knex, close } = openDatabase(versions.databaseUrl);
test.after.always(stopPrograms);
test.after.always(async () => {
  await close();
  await versions.close();
});

/** Issues what the tests need, half of it at each server. */
async function issue() {
  return {
    tokens: [await first.token(app), await second.token(app)],
    used: await flow(),
    revoked: await flow(),
    leaked: await flow(),
    replayed: await flow(),
  };
}

const allOf = ({ tokens, ...flows }: Awaited<ReturnType<typeof issue>>) => [
  ...tokens,
  ...Object.values(flows).flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken]),
];
const isStored = async (key: string) => (await knex("tokens").where({ id_hash: key }).first()) !== undefined;
const timedKeyOf = (token: string) => (token.slice(4, 13) + sha256(token)).slice(0, 43);

async function isActive(server: typeof first, token: string): Promise<boolean> {
  return (await postAsClient(server, "introspect", app, { token })).body.active === true;
}

/** Checks that both servers accept tokens, and find each with one statement. */
async function assertAccepted(t: ExecutionContext, tokens: string[]) {
  for (const server of servers) {
    for (const token of tokens) {
      const statements: string[] = [];
      const stop = server.storage.onStatement((sql) => statements.push(sql));
      t.true(await isActive(server, token), token);
      stop();
      t.is(statements.filter((sql) => /from .tokens. as .t./.test(sql)).length, 1, statements.join("\n"));
      if (token.startsWith("lga_")) t.true(await isAcceptedByApi(server, token), token);
    }
  }
}

let during: Awaited<ReturnType<typeof issue>>;
let after: typeof during;

test.serial("tokens of the previous version stay valid", async (t) => {
  await assertAccepted(t, [before.token, before.used.accessToken, before.used.refreshToken]);
});

test.serial("for 24 hours, tokens are stored as the previous version expects them", async (t) => {
  t.true(await isStored(sha256(await first.token(app))));
  advanceClock(DAY - 10 * MINUTE);
  during = await issue();
  for (const token of allOf(during)) {
    t.true(await isStored(sha256(token)));
    t.false(await isStored(timedKeyOf(token)));
  }
  await assertAccepted(t, allOf(during));
});

test.serial("after that, they are stored in the order of issue", async (t) => {
  advanceClock(11 * MINUTE);
  after = await issue();
  for (const token of allOf(after)) {
    t.true(await isStored(timedKeyOf(token)));
    t.false(await isStored(sha256(token)));
  }
  await assertAccepted(t, [...allOf(after), ...allOf(during)]);
});

test.serial("tokens from before and after that can be revoked at any server", async (t) => {
  for (const { tokens, revoked } of [during, after]) {
    for (const [index, token] of [...tokens, revoked.refreshToken].entries())
      t.is((await postAsClient(servers[index % 2] as typeof first, "revoke", app, { token })).status, 200);
    for (const server of servers)
      for (const token of [...tokens, revoked.refreshToken, revoked.accessToken])
        t.false(await isActive(server, token));
  }
});

test.serial("leaked tokens from before and after that are revoked", async (t) => {
  for (const { leaked } of [during, after]) {
    const leak = { credential: leaked.refreshToken, source: null, url: null };
    t.true(await second.storage.leaks.revoke(leak, OPERATOR));
    t.false(await isActive(first, leaked.accessToken));
  }
});

test.serial("refresh tokens from before and after that are used and rotated at any server", async (t) => {
  for (const { used } of [before, during, after])
    for (const server of servers) t.is((await refresh(server, app, used.refreshToken)).status, 200);
  advanceClock(22 * DAY);
  for (const { used } of [before, during, after]) {
    const { status, body } = await refresh(first, app, used.refreshToken);
    t.is(status, 200);
    t.not(body.refresh_token, used.refreshToken);
    t.true(await isStored(timedKeyOf(String(body.refresh_token))));
    await assertAccepted(t, [String(body.access_token), String(body.refresh_token)]);
  }
});

test.serial("reuse of a rotated refresh token from before or after that revokes its family", async (t) => {
  for (const { replayed } of [before, during, after]) {
    const { body } = await refresh(first, app, replayed.refreshToken);
    t.not(body.refresh_token, replayed.refreshToken);
    t.is((await refresh(second, app, replayed.refreshToken)).status, 200, "a retry");
    advanceClock(11_000);
    t.is((await refresh(second, app, replayed.refreshToken)).body.error, "invalid_grant");
    for (const token of [body.refresh_token, body.access_token].map(String)) {
      t.false(await isActive(first, token));
    }
  }
});
