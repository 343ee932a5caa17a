import test from "ava";
import * as oidc from "openid-client";
import { openDatabase } from "../../adapters/database.ts";
import { sha256 } from "../../adapters/hash.ts";
import { startCluster } from "../harness/cluster.ts";
import { discover, tokensFor } from "../harness/flow.ts";
import { codeFor, createApp, newTokens, opensApi, redeemCode, refresh } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import type { TestService } from "../harness/service.ts";
import { atOnce } from "../harness/storage.ts";

const cluster = await startCluster();
const database = openDatabase(cluster.databaseUrl);
const { app, own, user } = await createApp(cluster);
const person = new Person(cluster.url);
test.after.always(async () => {
  await database.close();
  await cluster.close();
});

const turn = (index: number): TestService => cluster.authorization[index % 2] as TestService;

/** What both resource servers say of a token: that it is live, or that it is not. */
async function isLive(token: unknown): Promise<boolean> {
  const [one, other] = await Promise.all(cluster.resources.map((server) => opensApi(server, token)));
  if (one !== other) throw new Error("the resource servers do not agree");
  return one as boolean;
}

test.serial("people sign in and allow an app while every request meets the other server", async (t) => {
  for (let round = 0; round < 5; round++) {
    const tokens = await tokensFor(cluster, app, user, { parameters: { scope: "openid links:write" } });
    t.is(tokens.claims()?.sub, user.id);
    t.is(tokens.claims()?.iss, cluster.url);
    const answer = await fetch(`${cluster.url}/v1/organization`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    t.like(await answer.json(), { id: own.id });
    const config = await discover(cluster, app);
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string);
    t.true(await isLive(refreshed.access_token));
    await oidc.tokenRevocation(config, refreshed.access_token);
    t.false((await oidc.tokenIntrospection(config, refreshed.access_token)).active);
    t.false(await isLive(tokens.access_token));
  }
});

test.serial(
  "of 20 redemptions of one code over both servers exactly one gets tokens, and they live",
  async (t) => {
    for (let round = 0; round < 15; round++) {
      const code = await codeFor(cluster, app, user, { person });
      const answers = await atOnce(20, (index) => redeemCode(turn(index), app, code));
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const { status, body } of answers.filter((answer) => answer !== winner)) {
        t.is(status, 400);
        t.is(body.error, "invalid_grant");
      }
      t.true(await isLive(winner?.body.access_token));
      const again = await refresh(turn(round), app, String(winner?.body.refresh_token));
      t.is(again.status, 200);
      t.true(await isLive(again.body.access_token));
    }
  },
);

test.serial("20 refreshes at once over both servers each get a token that lives, of one grant", async (t) => {
  const { refreshToken, accessToken } = await newTokens(cluster, app, user, { person });
  const answers = await atOnce(20, (index) => refresh(turn(index), app, refreshToken));
  for (const { status, body } of answers) {
    t.is(status, 200);
    t.is(body.refresh_token, refreshToken); // early in its life a confidential client keeps it
    t.true(await isLive(body.access_token));
  }
  t.is(new Set(answers.map(({ body }) => body.access_token)).size, 20);
  await oidc.tokenRevocation(await discover(cluster, app), refreshToken);
  for (const token of [accessToken, ...answers.map(({ body }) => body.access_token)])
    t.false(await isLive(token));
});

test.serial("near its end a refresh token rotates: 20 at once each get a pair of one family", async (t) => {
  const { refreshToken } = await newTokens(cluster, app, user, { person });
  await makeOlder(refreshToken, 25);
  const answers = await atOnce(20, (index) => refresh(turn(index), app, refreshToken));
  for (const { status, body, text } of answers) {
    t.is(status, 200, text);
    t.not(body.refresh_token, refreshToken);
    t.true(await isLive(body.access_token));
  }
  t.is(new Set(answers.map(({ body }) => body.refresh_token)).size, 20);

  // Later than any retry it is a replay: whoever holds it is not the client alone.
  await database
    .knex("tokens")
    .where({ id_hash: sha256(refreshToken) })
    .update({ consumed_at: Date.now() - 60_000 });
  t.is((await refresh(turn(1), app, refreshToken)).body.error, "invalid_grant");
  for (const [index, { body }] of answers.entries()) {
    t.false(await isLive(body.access_token));
    t.is((await refresh(turn(index), app, String(body.refresh_token))).body.error, "invalid_grant");
  }
});

/** The clock of another process cannot be moved: the token is made to have been issued days ago. */
async function makeOlder(refreshToken: string, days: number) {
  const row = database.knex("tokens").where({ id_hash: sha256(refreshToken) });
  const { payload, expires_at } = await row.clone().first("payload", "expires_at");
  const stored = JSON.parse(payload);
  const seconds = days * 86_400;
  for (const name of ["iat", "exp", "iiat"]) stored[name] -= seconds;
  await row.update({ payload: JSON.stringify(stored), expires_at: expires_at - seconds * 1000 });
}
