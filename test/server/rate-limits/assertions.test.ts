import test from "ava";
import { generateKeyPair, SignJWT } from "jose";
import { read } from "../../harness/clients/oauth.ts";
import { createTrustingOrganization, FORMS, type Form, jobToken } from "../../harness/clients/workload.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([
  startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" }),
  startTokenIssuer(),
]);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

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
