import test from "ava";
import { type Api, apiAt, read } from "../harness/clients/api.ts";
import { athOf, boundToken, createDpopKey, requestWithProof, signProof } from "../harness/clients/dpop.ts";
import { basic } from "../harness/clients/oauth.ts";
import { createProtected, logIn, type Protected, proveFactor } from "../harness/clients/second-factor.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";
import { rounds } from "../harness/rounds.ts";
import { postForm, type TestService } from "../harness/service.ts";

export const databases = "all";

const cluster = await startCluster();
const app = await cluster.createOrganization();
const token = await cluster.token(app);
const apis = cluster.resources.map(({ url }) => apiAt(url, token));
const key = await createDpopKey();
const ROUNDS = rounds(3, 15);

const issuerFor = (index: number) => cluster.authorization[index % 2] as TestService;
const apiFor = (index: number) => apis[index % 2] as Api;

type Answer = { status: number; body: unknown };
type Race = {
  /** Prepares what is used up. Returns a request for it, to the server of an index. */
  prepare(round: number): Promise<(index: number) => Promise<Answer>>;
  requests: number;
  /** How many responses have a status. */
  expected: Record<number, number>;
  /** The code or error of the others. */
  refusal?: string;
};

/** Sends a second factor, which is used up, to logins that began at different servers. */
async function prove(account: Protected, fields: object) {
  const logins = await atOnce(2, (index) => logIn(issuerFor(index), account));
  return (index: number) =>
    proveFactor(issuerFor(index + 1), String(logins[index]?.body.login_token), fields);
}

/** Returns the headers of a request for links, with a bound token and a proof. */
async function linksProof(nonce?: string) {
  const bound = await boundToken(cluster, app, key);
  const claims = { htm: "GET", htu: `${cluster.url}/v1/links`, ath: athOf(bound), nonce };
  return { authorization: `DPoP ${bound}`, dpop: await signProof(key, { claims }) };
}

const readLinks = async (index: number, headers: Record<string, string>) =>
  read(await fetch(`${cluster.resources[index % 2]?.url}/v1/links`, { headers }));

const RACES: Record<string, Race> = {
  "a proof of possession at resource servers": {
    requests: 20,
    expected: { 200: 1, 401: 19 },
    refusal: "invalid_dpop_proof",
    async prepare() {
      const headers = await linksProof();
      return (index) => readLinks(index, headers);
    },
  },
  "a proof of possession at authorization servers": {
    requests: 20,
    expected: { 200: 1, 400: 19 },
    refusal: "invalid_grant",
    async prepare() {
      const claims = { htm: "POST", htu: `${cluster.url}/oauth/token` };
      const headers = { ...basic(app), dpop: await signProof(key, { claims }) };
      const form = { grant_type: "client_credentials" };
      return async (index) => read(await postForm(`${issuerFor(index).url}/oauth/token`, form, headers));
    },
  },
  "a code of an authenticator app": {
    requests: 2,
    expected: { 200: 1, 401: 1 },
    refusal: "invalid_second_factor",
    async prepare(round) {
      const account = await createProtected(issuerFor(round));
      return prove(account, { totp: account.code() });
    },
  },
  "a recovery code": {
    requests: 2,
    expected: { 200: 1, 401: 1 },
    refusal: "invalid_second_factor",
    async prepare(round) {
      const account = await createProtected(issuerFor(round));
      return prove(account, { recovery_code: account.recoveryCodes[round] });
    },
  },
  "a single-use link": {
    requests: 40,
    expected: { 302: 1, 410: 39 },
    async prepare() {
      const { slug } = await apiFor(0).createLink({ max_clicks: 1 });
      return (index) => apiFor(index).get(`/${slug}`);
    },
  },
};

for (const [what, { prepare, requests, expected, refusal }] of Object.entries(RACES))
  test.serial(`of concurrent uses of ${what} at both servers, as many succeed as may`, async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await atOnce(requests, await prepare(round));
      const counts: Record<number, number> = {};
      for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
      t.deepEqual(counts, expected);
      const bodies = answers.map(({ status, body }) => ({ ...(body as Record<string, unknown>), status }));
      const [, ...losers] = bodies.toSorted((one, other) => one.status - other.status);
      if (refusal)
        for (const { error, code } of losers as Record<string, unknown>[]) t.is(error ?? code, refusal);
    }
  });

test.serial("a nonce of one server is valid at all of them", async (t) => {
  const nonce = (await readLinks(0, await linksProof())).headers.get("dpop-nonce") ?? "";
  t.truthy(nonce);
  t.is((await readLinks(1, await linksProof(nonce))).status, 200);
  const issued = await requestWithProof(cluster, app, key, { proof: { claims: { nonce } } });
  t.is(issued.status, 200);
});
