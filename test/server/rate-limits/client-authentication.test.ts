import test from "ava";
import { generateKeyPair, SignJWT } from "jose";
import { hostKeyOf, networkKeyOf } from "../../../server/http/client-ip.ts";
import {
  basic,
  codeFor,
  createApp,
  isAcceptedByApi,
  postAsClient,
  read,
  redeemCode,
  refresh,
} from "../../harness/clients/oauth.ts";
import { postRegistration } from "../../harness/clients/registration.ts";
import { createTrustingOrganization, FORMS, type Form, jobToken } from "../../harness/clients/workload.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../../harness/service.ts";

export const stage = "long";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });
const { app, user } = await createApp(service);

const issuer = await startTokenIssuer();

const LIMIT = 3000;
const CONCURRENT = 20;

const registering = await startTestService({
  DYNAMIC_REGISTRATION: "stateless",
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
});

test.after.always(() => service.close());
test.after.always(() => issuer.stop());
test.after.always(() => registering.close());

const CREDENTIALS = { grant_type: "client_credentials" };

/** Sends a request from an IP address. Each test uses its own network, so tests don't share counters. */
function requestFrom(
  address: string,
  client: typeof app,
  endpoint = "token",
  fields: Record<string, string> = CREDENTIALS,
) {
  const headers = { ...basic(client), "x-forwarded-for": address };
  return read(postForm(`${service.url}/oauth/${endpoint}`, fields, headers));
}

const REQUESTS: Record<string, Record<string, string>> = {
  token: CREDENTIALS,
  revoke: { token: "x" },
  introspect: { token: "x" },
  par: { response_type: "code" },
};

for (const [number, [endpoint, fields]] of Object.entries(REQUESTS).entries()) {
  test(`guesses of a secret at ${endpoint} get 429, while the client is served on other networks`, async (t) => {
    const { app: own } = await createApp(service);
    const network = `198.51.${number}`;
    const wrong = { ...own, clientSecret: "lgs_wrong" };
    const statuses: number[] = [];
    let last = await requestFrom(`${network}.1`, wrong, endpoint, fields);
    for (let guess = 0; guess < 60; guess++) {
      statuses.push(last.status);
      last = await requestFrom(`${network}.${guess}`, wrong, endpoint, fields);
    }
    t.is(statuses[0], 401);
    t.is(last.status, 429);
    t.regex(last.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    t.true(Number(last.headers.get("retry-after")) <= 60);
    t.is((await requestFrom("203.0.113.1", own)).status, 200);
  });
}

test("a hundred wrong secrets don't refuse the client itself, on the same network or another one", async (t) => {
  const { app: own } = await createApp(service);
  const wrong = { ...own, clientSecret: "lgs_wrong" };
  for (let guess = 0; guess < 100; guess++) await requestFrom("192.0.2.1", wrong);
  const refused = await requestFrom("192.0.2.1", wrong);
  t.is(refused.status, 429);
  t.is(refused.body.error, "slow_down");
  t.is(refused.headers.get("www-authenticate"), null);
  t.is(refused.headers.get("cache-control"), "no-store");
  for (const address of ["192.0.2.1", "192.0.2.200", "192.0.3.200"]) {
    t.is((await requestFrom(address, own)).status, 200, address);
    t.is((await requestFrom(address, own, "introspect", { token: "x" })).status, 200, address);
  }
});

test("guesses at many clients don't refuse the others on the network", async (t) => {
  for (let batch = 0; batch < 10; batch++) {
    await atOnce(31, (guess) =>
      requestFrom("192.0.10.1", { ...app, clientId: `lgc_${batch}-${guess}`, clientSecret: "x" }),
    );
  }
  t.is((await requestFrom("192.0.10.1", { ...app, clientSecret: "x" })).status, 429);
  t.is((await requestFrom("192.0.10.1", app)).status, 200);
});

test("a /48 has one limit on guesses of a secret", async (t) => {
  const { app: own } = await createApp(service);
  const statuses = [];
  for (let guess = 0; guess < 60; guess++) {
    const address = `2001:db8:1:${guess.toString(16)}::1`;
    statuses.push((await requestFrom(address, { ...own, clientSecret: "lgs_wrong" })).status);
  }
  t.is(statuses.indexOf(429), 40);
  t.is((await requestFrom("2001:db8:1::1", own)).status, 200);
});

test("guessing the secrets of many clients is limited per network", async (t) => {
  const statuses = new Set<number>();
  for (let guess = 0; guess < 320; guess++) {
    statuses.add(
      (await requestFrom("192.0.9.1", { ...app, clientId: `lgc_${guess}`, clientSecret: "x" })).status,
    );
  }
  t.deepEqual([...statuses], [401, 429]);
});

test("guesses of a code verifier get 429 and leave the code valid on other networks", async (t) => {
  const code = await codeFor(service, app, user);
  const fields = { grant_type: "authorization_code", code, redirect_uri: "https://app.example.com/callback" };
  const statuses: number[] = [];
  for (let guess = 0; guess < 50; guess++) {
    const verifier = String(guess).padStart(43, "x");
    statuses.push(
      (await requestFrom("192.0.5.1", app, "token", { ...fields, code_verifier: verifier })).status,
    );
  }
  t.is(statuses[0], 400);
  t.is(statuses.at(-1), 429);
  t.is((await redeemCode(service, app, code)).status, 200);
});

test("successful requests don't count as guesses", async (t) => {
  for (let request = 0; request < 60; request++) t.is((await requestFrom("192.0.6.1", app)).status, 200);
});

test("errors of other kinds don't count as guesses", async (t) => {
  for (let request = 0; request < 60; request++) {
    const { status } = await requestFrom("192.0.7.1", app, "token", { ...CREDENTIALS, scope: "admin" });
    t.is(status, 400);
  }
  t.is((await requestFrom("192.0.7.1", app)).status, 200);
});

test("a flood of guesses revokes no token of the client", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  for (let guess = 0; guess < 50; guess++)
    await requestFrom("192.0.8.1", { ...app, clientSecret: "lgs_wrong" });
  t.true(await isAcceptedByApi(service, body.access_token));
  t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
  t.is(
    (await postAsClient(service, "introspect", app, { token: String(body.access_token) })).body.active,
    true,
  );
});

/** Sends an assertion from an IP address. Each test uses its own network, so tests don't share counters. */
function sendFrom(address: string, form: Form, clientId: string, assertion: string) {
  const fields = { client_id: clientId, ...FORMS[form].fields(assertion) } as Record<string, string>;
  return read(postForm(`${service.url}/oauth/token`, fields, { "x-forwarded-for": address }));
}

test("forged assertions of a client get 429, while others on the network are served", async (t) => {
  const { clientId } = await service.createOrganization();
  const { privateKey } = await generateKeyPair("ES256");
  const forged = await new SignJWT({ iss: clientId, sub: clientId })
    .setProtectedHeader({ alg: "ES256" })
    .sign(privateKey);
  const statuses: number[] = [];
  for (let guess = 0; guess < 60; guess++)
    statuses.push((await sendFrom("198.51.100.1", "client_assertion", clientId, forged)).status);
  t.is(statuses[0], 401);
  t.is(statuses.at(-1), 429);
  const other = await createTrustingOrganization(service, issuer);
  const token = await jobToken(service, issuer);
  t.is((await sendFrom("198.51.100.1", "client_assertion", other.clientId, token)).status, 200);
});

test("an issuer that fails is not asked again for every token of one network", async (t) => {
  const away = await startTokenIssuer();
  t.teardown(() => away.stop());
  const { clientId } = await createTrustingOrganization(service, away);
  const token = await jobToken(service, away);
  const { restore } = away.breakDown();
  let last = await sendFrom("198.51.101.1", "grant", clientId, token);
  t.is(last.status, 400);
  for (let request = 0; request < 60; request++)
    last = await sendFrom("198.51.101.1", "grant", clientId, token);
  t.is(last.status, 429);
  t.true(away.requests.length <= 50, String(away.requests.length));
  restore();
  t.is((await sendFrom("198.51.102.1", "grant", clientId, token)).status, 200);
});

const post = (address: string) =>
  postRegistration(
    registering,
    { redirect_uris: ["http://127.0.0.1/callback"] },
    { "x-forwarded-for": address },
  );

test("registrations are limited per network, like other requests of clients", async (t) => {
  const first = "198.51.100.1";
  for (let sent = 0; sent < LIMIT; sent += CONCURRENT) {
    await Promise.all(Array.from({ length: CONCURRENT }, () => post(first)));
  }
  const limited = await post(first);
  t.is(limited.status, 429);
  t.is(limited.body.error, "slow_down");
  t.true(Number(limited.headers.get("retry-after")) >= 1);
  t.is((await post("203.0.113.1")).status, 201);
});

const KEYS: [address: string, network: string, host: string][] = [
  ["198.51.100.7", "198.51.100", "198.51.100.7"],
  ["198.51.100.7:5678", "198.51.100", "198.51.100.7"],
  ["::ffff:198.51.100.7", "198.51.100", "198.51.100.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:DB8:1:2::", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:0db8:0001:0002::1", "2001:db8:1:2", "2001:db8:1:2"],
  ["[2001:db8:1:2::1]:5678", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:db8::1", "2001:db8:0:0", "2001:db8:0:0"],
  ["::1", "0:0:0:0", "0:0:0:0"],
  ["unknown", "unknown", "unknown"],
  ["", "", ""],
];

for (const [address, network, host] of KEYS) {
  test(`"${address}" counts for the network "${network}" and the host "${host}"`, (t) => {
    t.is(networkKeyOf(address), network);
    t.is(hostKeyOf(address), host);
  });
}
const SAME: [a: string, b: string][] = [
  ["2001:DB8::1", "2001:db8::1"],
  ["2001:0db8::0001", "2001:db8::1"],
  ["2001:db8::1", "2001:db8:0:0:ffff::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["[2001:db8::1]:5678", "2001:db8::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["203.0.113.9:5678", "203.0.113.9:5679"],
  ["203.0.113.9:5678", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["::FFFF:203.0.113.9", "203.0.113.9"],
  ["::ffff:cb00:7109", "203.0.113.9"],
];

for (const [a, b] of SAME) {
  test(`${a} counts as ${b}`, (t) => {
    t.is(hostKeyOf(a), hostKeyOf(b));
    t.is(networkKeyOf(a), networkKeyOf(b));
  });
}

test("addresses of one /24 share a key, but are different hosts", (t) => {
  t.is(networkKeyOf("203.0.113.9"), networkKeyOf("203.0.113.250"));
  t.not(hostKeyOf("203.0.113.9"), hostKeyOf("203.0.113.250"));
});

const DIFFERENT: [a: string, b: string][] = [
  ["203.0.113.9", "203.0.114.9"],
  ["2001:db8::1", "2001:db8:0:1::1"],
  ["2001:db8::1", "203.0.113.9"],
  ["unknown", "203.0.113.9"],
  ["unknown", "hidden"],
];

for (const [a, b] of DIFFERENT) {
  test(`${a} and ${b} have different keys`, (t) => {
    t.not(hostKeyOf(a), hostKeyOf(b));
    t.not(networkKeyOf(a), networkKeyOf(b));
  });
}
