import test from "ava";
import { codeFor, runCodeFlow, shareApp } from "../../harness/clients/authorization.ts";
import { createApp, VERIFIER } from "../../harness/clients/authorization-request.ts";
import {
  type Answer,
  basic,
  isAcceptedByApi,
  read,
  redeemCode,
  redemptionOf,
  refresh,
} from "../../harness/clients/oauth.ts";
import { createTrustingOrganization, FORMS, type Form, jobToken } from "../../harness/clients/workload.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm } from "../../harness/service.ts";

export const stage = "long";

const { service, app, user } = await shareApp({
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
  DYNAMIC_REGISTRATION: "stateless",
});
const issuer = await startTokenIssuer();

const CREDENTIALS = { grant_type: "client_credentials" };

/** Sends a request from an IP address. Each test uses its own network, so tests don't share counters. */
function requestFrom(
  address: string,
  client: { clientId: string; clientSecret: string },
  endpoint = "token",
  fields: Record<string, string> = CREDENTIALS,
) {
  const headers = { ...basic(client), "x-forwarded-for": address };
  return read(postForm(`${service.url}/oauth/${endpoint}`, fields, headers));
}

async function statusesOf(count: number, send: (index: number) => Promise<Answer>): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < count; index++) statuses.push((await send(index)).status);
  return statuses;
}

const withWrongSecret = (client = app) => ({ ...client, clientSecret: "lgs_wrong" });

const REQUESTS: Record<string, Record<string, string>> = {
  token: CREDENTIALS,
  revoke: { token: "x" },
  introspect: { token: "x" },
  par: { response_type: "code" },
};

for (const [number, [endpoint, fields]] of Object.entries(REQUESTS).entries())
  test(`guesses of a secret at ${endpoint} get 429, while the client is served on other networks`, async (t) => {
    const { app: own } = await createApp(service);
    const wrong = withWrongSecret(own);
    // A /24 of IPv4, or a /48 of IPv6.
    const addressOf = (guess: number) =>
      number % 2 ? `2001:db8:${number}:${guess}::1` : `198.51.${number}.${guess}`;
    const [first] = await statusesOf(61, (guess) => requestFrom(addressOf(guess), wrong, endpoint, fields));
    t.is(first, 401);
    const { status, headers } = await requestFrom(addressOf(1), wrong, endpoint, fields);
    t.is(status, 429);
    t.regex(headers.get("retry-after") ?? "", /^([1-9]|[1-5]\d|60)$/);
    t.is((await requestFrom("203.0.113.1", own)).status, 200);
  });

test("a hundred wrong secrets don't refuse the client itself, on the same network or another one, nor revoke", async (t) => {
  const { app: own, user: owner } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, own, owner);
  await statusesOf(100, () => requestFrom("192.0.2.1", withWrongSecret(own)));
  const refused = await requestFrom("192.0.2.1", withWrongSecret(own));
  t.is(refused.status, 429);
  t.is(refused.body.error, "slow_down");
  t.is(refused.headers.get("www-authenticate"), null);
  t.is(refused.headers.get("cache-control"), "no-store");
  for (const address of ["192.0.2.1", "192.0.2.200", "192.0.3.200"]) {
    t.is((await requestFrom(address, own)).status, 200, address);
    t.is((await requestFrom(address, own, "introspect", { token: "x" })).status, 200, address);
  }
  t.true(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, own, refreshToken)).status, 200);
});

test("guessing the secrets of many clients is limited per network", async (t) => {
  const guess = (count: number) =>
    requestFrom("192.0.9.1", { clientId: `lgc_${count}`, clientSecret: "lgs_wrong" });
  const statuses = new Set<number>();
  for (let batch = 0; batch < 16; batch++)
    for (const { status } of await atOnce(20, (index) => guess(batch * 20 + index))) statuses.add(status);
  t.deepEqual([...statuses], [401, 429]);
  t.is((await requestFrom("192.0.9.1", app)).status, 200, "clients on the network are served");
});

test("guesses of a code verifier get 429 and leave the code valid on other networks", async (t) => {
  const code = await codeFor(service, app, user);
  const statuses = await statusesOf(50, (guess) => {
    const code_verifier = String(guess).padStart(VERIFIER.length, "x");
    return requestFrom("192.0.5.1", app, "token", { ...redemptionOf(code), code_verifier });
  });
  t.is(statuses[0], 400);
  t.is(statuses.at(-1), 429);
  t.is((await redeemCode(service, app, code)).status, 200);
});

test("successful requests and errors of other kinds don't count as guesses", async (t) => {
  for (let request = 0; request < 60; request++) {
    t.is((await requestFrom("192.0.6.1", app)).status, 200);
    t.is((await requestFrom("192.0.6.1", app, "token", { ...CREDENTIALS, scope: "admin" })).status, 400);
  }
});

function sendFrom(address: string, form: Form, clientId: string, assertion: string) {
  const fields = { client_id: clientId, ...FORMS[form].fields(assertion) } as Record<string, string>;
  return read(postForm(`${service.url}/oauth/token`, fields, { "x-forwarded-for": address }));
}

test("forged assertions of a client get 429, while others on the network are served", async (t) => {
  const { clientId } = await service.createOrganization();
  const forged = await issuer.sign({ iss: clientId, sub: clientId });
  const statuses = await statusesOf(60, () => sendFrom("198.51.100.1", "client_assertion", clientId, forged));
  t.is(statuses[0], 401);
  t.is(statuses.at(-1), 429);
  const other = await createTrustingOrganization(service, issuer);
  const token = await jobToken(service, issuer);
  t.is((await sendFrom("198.51.100.1", "client_assertion", other.clientId, token)).status, 200);
});

test("an issuer that fails is not asked again for every token of one network", async (t) => {
  const away = await startTokenIssuer();
  const { clientId } = await createTrustingOrganization(service, away);
  const token = await jobToken(service, away);
  const { restore } = away.breakDown();
  const statuses = await statusesOf(60, () => sendFrom("198.51.101.1", "grant", clientId, token));
  t.is(statuses[0], 400);
  t.is(statuses.at(-1), 429);
  t.true(away.requests.length <= 50, String(away.requests.length));
  restore();
  t.is((await sendFrom("198.51.102.1", "grant", clientId, token)).status, 200);
});
