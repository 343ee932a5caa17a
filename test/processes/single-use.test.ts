import test from "ava";
import * as oidc from "openid-client";
import { openDatabase } from "../../adapters/database/index.ts";
import { tokenKey } from "../../adapters/oauth/token-row.ts";
import { athOf, boundToken, createDpopKey, signProof } from "../harness/clients/dpop.ts";
import { discover, tokensFor } from "../harness/clients/flow.ts";
import {
  basic,
  codeFor,
  createApp,
  isAcceptedByApi,
  read,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";
import { postForm, type TestService } from "../harness/service.ts";

export const databases = "all";

const cluster = await startCluster();
const database = openDatabase(cluster.databaseUrl);
const { app, own, user } = await createApp(cluster);

const key = await createDpopKey();

test.after.always(async () => {
  await database.close();
  await cluster.close();
});

const browser = new TestBrowser(cluster.url);

const serverFor = (index: number): TestService => cluster.authorization[index % 2] as TestService;

/** Returns whether both resource servers accept a token. */
async function isAccepted(token: unknown): Promise<boolean> {
  const [one, other] = await Promise.all(cluster.resources.map((server) => isAcceptedByApi(server, token)));
  if (one !== other) throw new Error("the resource servers disagree");
  return one as boolean;
}

test.serial("the code flow works when consecutive requests go to alternating servers", async (t) => {
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
    t.true(await isAccepted(refreshed.access_token));
    await oidc.tokenRevocation(config, refreshed.access_token);
    t.false((await oidc.tokenIntrospection(config, refreshed.access_token)).active);
    t.false(await isAccepted(tokens.access_token));
  }
});

test.serial(
  "concurrent redemptions of one code at both servers succeed exactly once, with tokens that stay valid",
  async (t) => {
    for (let round = 0; round < 15; round++) {
      const code = await codeFor(cluster, app, user, { browser });
      const answers = await atOnce(20, (index) => redeemCode(serverFor(index), app, code));
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const { status, body } of answers.filter((answer) => answer !== winner)) {
        t.is(status, 400);
        t.is(body.error, "invalid_grant");
      }
      t.true(await isAccepted(winner?.body.access_token));
      const again = await refresh(serverFor(round), app, String(winner?.body.refresh_token));
      t.is(again.status, 200);
      t.true(await isAccepted(again.body.access_token));
    }
  },
);

test.serial(
  "concurrent refreshes at both servers each get a valid access token of the same grant",
  async (t) => {
    const { refreshToken, accessToken } = await runCodeFlow(cluster, app, user, { browser });
    const answers = await atOnce(20, (index) => refresh(serverFor(index), app, refreshToken));
    for (const { status, body } of answers) {
      t.is(status, 200);
      t.is(body.refresh_token, refreshToken); // not rotated early in its lifetime
      t.true(await isAccepted(body.access_token));
    }
    t.is(new Set(answers.map(({ body }) => body.access_token)).size, 20);
    await oidc.tokenRevocation(await discover(cluster, app), refreshToken);
    for (const token of [accessToken, ...answers.map(({ body }) => body.access_token)])
      t.false(await isAccepted(token));
  },
);

test.serial(
  "of concurrent refreshes that rotate at both servers, eleven get tokens of one family",
  async (t) => {
    const { refreshToken } = await runCodeFlow(cluster, app, user, { browser });
    await backdate(refreshToken, 25);
    const all = await atOnce(20, (index) => refresh(serverFor(index), app, refreshToken));
    const answers = all.filter(({ status }) => status === 200);
    for (const { status, body } of all) if (status !== 200) t.is(body.error, "invalid_grant");
    for (const { body } of answers) {
      t.not(body.refresh_token, refreshToken);
      t.true(await isAccepted(body.access_token));
    }
    t.is(new Set(answers.map(({ body }) => body.refresh_token)).size, 11, "the first use and ten retries");

    // After the retry window a use is a replay: someone other than the client has the token.
    await database
      .knex("tokens")
      .where({ id_hash: tokenKey(refreshToken) })
      .update({ consumed_at: Date.now() - 60_000 });
    t.is((await refresh(serverFor(1), app, refreshToken)).body.error, "invalid_grant");
    for (const [index, { body }] of answers.entries()) {
      t.false(await isAccepted(body.access_token));
      t.is((await refresh(serverFor(index), app, String(body.refresh_token))).body.error, "invalid_grant");
    }
  },
);

/** Changes a stored token as if it had been issued days ago, since the clock of another process can't be advanced. */
async function backdate(refreshToken: string, days: number) {
  const id_hash = tokenKey(refreshToken);
  const row = database.knex("tokens").where({ id_hash });
  const found = await row.clone().first("payload", "expires_at");
  if (!found) throw new Error("the token is not stored");
  const stored = JSON.parse(found.payload);
  const seconds = days * 86_400;
  for (const name of ["iat", "exp", "iiat"]) stored[name] -= seconds;
  await row.update({ payload: JSON.stringify(stored), expires_at: found.expires_at - seconds * 1000 });
}

const ROUNDS = 10;
const one = (servers: [TestService, TestService], index: number) => servers[index % 2] as TestService;

test.serial(
  "of concurrent calls with one proof at both resource servers, exactly one succeeds",
  async (t) => {
    const token = await boundToken(cluster, app, key);
    for (let round = 0; round < ROUNDS; round++) {
      const claims = { htm: "GET", htu: `${cluster.url}/v1/links`, ath: athOf(token) };
      const headers = { authorization: `DPoP ${token}`, dpop: await signProof(key, { claims }) };
      const answers = await atOnce(20, (index) =>
        read(fetch(`${one(cluster.resources, index).url}/v1/links`, { headers })),
      );
      t.is(answers.filter(({ status }) => status === 200).length, 1);
      for (const { status, body, text } of answers.filter((answer) => answer.status !== 200)) {
        t.is(status, 401, text);
        t.is(body.code, "invalid_dpop_proof");
      }
    }
  },
);

test.serial(
  "of concurrent token requests with one proof at both servers, exactly one succeeds",
  async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const claims = { htm: "POST", htu: `${cluster.url}/oauth/token` };
      const headers = { ...basic(app), dpop: await signProof(key, { claims }) };
      const answers = await atOnce(20, (index) =>
        read(
          postForm(
            `${one(cluster.authorization, index).url}/oauth/token`,
            { grant_type: "client_credentials" },
            headers,
          ),
        ),
      );
      t.is(answers.filter(({ status }) => status === 200).length, 1);
      for (const { status, body, text } of answers.filter((answer) => answer.status !== 200)) {
        t.is(status, 400, text);
        t.is(body.error, "invalid_grant");
      }
    }
  },
);

test.serial("a nonce of one server is valid at all of them", async (t) => {
  const token = await boundToken(cluster, app, key);
  const call = async (server: TestService, nonce?: string | null) => {
    const claims = {
      htm: "GET",
      htu: `${cluster.url}/v1/links`,
      ath: athOf(token),
      nonce: nonce ?? undefined,
    };
    const headers = { authorization: `DPoP ${token}`, dpop: await signProof(key, { claims }) };
    return read(fetch(`${server.url}/v1/links`, { headers }));
  };
  const nonce = (await call(cluster.resources[0])).headers.get("dpop-nonce");
  t.truthy(nonce);
  t.is((await call(cluster.resources[1], nonce)).status, 200);
  const claims = { htm: "POST", htu: `${cluster.url}/oauth/token`, nonce };
  const headers = { ...basic(app), dpop: await signProof(key, { claims }) };
  const fields = { grant_type: "client_credentials" };
  t.is((await postForm(`${cluster.url}/oauth/token`, fields, headers)).status, 200);
});
