import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../../harness/clients/workload.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

const SECOND_MS = 1000;
const ATTEMPTS = 20;

for (const form of Object.keys(FORMS) as Form[]) {
  test(`of ${ATTEMPTS} concurrent requests with one token as ${form}, one succeeds`, async (t) => {
    const organization = await createTrustingOrganization(service, issuer);
    for (const claims of [{}, { jti: undefined, run_id: form }]) {
      const token = await jobToken(service, issuer, claims);
      const answers = await Promise.all(
        Array.from({ length: ATTEMPTS }, () => exchange(service, organization, form, token)),
      );
      t.is(answers.filter(({ status }) => status === 200).length, 1);
      for (const answer of answers.filter(({ status }) => status !== 200))
        isRefused(t, form, answer, /the JWT was already used$/);
    }
  });
}

test("a token that was used in one form is refused in the other", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const token = await jobToken(service, issuer);
  t.is((await exchange(service, organization, "grant", token)).status, 200);
  isRefused(
    t,
    "client_assertion",
    await exchange(service, organization, "client_assertion", token),
    /already used$/,
  );
});

test("a token can be used again after an invalid request", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const token = await jobToken(service, issuer);
  const resource = "https://other.example";
  const { body } = await exchange(service, organization, "grant", token, { resource });
  t.is(body.error, "invalid_target");
  t.is((await exchange(service, organization, "grant", token)).status, 200);
});

test("a token that was used for one client is refused for another", async (t) => {
  const [first, second] = await Promise.all([
    createTrustingOrganization(service, issuer),
    createTrustingOrganization(service, issuer),
  ]);
  const token = await jobToken(service, issuer);
  t.is((await exchange(service, first, "grant", token)).status, 200);
  isRefused(t, "grant", await exchange(service, second, "grant", token), /already used$/);
});

const EXPIRIES: [what: string, exp: () => number][] = [
  ["no whole number", () => Date.now() / 1000 + 60.123_456],
  ["beyond every calendar", () => 1e300],
];

for (const [what, exp] of EXPIRIES) {
  test(`a token whose expiry is ${what} is accepted once`, async (t) => {
    const organization = await createTrustingOrganization(service, issuer);
    const token = await jobToken(service, issuer, { exp: exp() });
    t.is((await exchange(service, organization, "grant", token)).status, 200);
    isRefused(t, "grant", await exchange(service, organization, "grant", token), /already used$/);
  });
}

test("another token with the same jti is refused", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const jti = "a-repeated-id";
  t.is(
    (await exchange(service, organization, "grant", await jobToken(service, issuer, { jti }))).status,
    200,
  );
  const again = await jobToken(service, issuer, { jti, run_attempt: "2" });
  isRefused(t, "grant", await exchange(service, organization, "grant", again), /already used$/);
});

test("the same jti of another issuer is accepted", async (t) => {
  const other = await startTokenIssuer();
  t.teardown(() => other.stop());
  const jti = "an-id-of-both";
  for (const one of [issuer, other]) {
    const organization = await createTrustingOrganization(service, one);
    t.is((await exchange(service, organization, "grant", await jobToken(service, one, { jti }))).status, 200);
  }
});

test("a deleted rule is not used any more", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer));
  t.true(await service.storage.trustRules.remove(organization.id, organization.ruleId, OPERATOR));
  const answer = await exchange(service, organization, "grant", await jobToken(service, issuer));
  isRefused(t, "grant", answer, UNTRUSTED);
  t.true(await isAcceptedByApi(service, body.access_token), "issued tokens expire by themselves");
});

test("on the Free plan, only a workload with a valid token learns of the plan", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  for (const form of Object.keys(FORMS) as Form[]) {
    const token = await jobToken(service, issuer);
    const { status, body } = await exchange(service, organization, form, token);
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
    const stranger = await jobToken(service, issuer, { sub: "repo:evil/repo:ref:refs/heads/main" });
    isRefused(t, form, await exchange(service, organization, form, stranger), /check sub$/);
  }
  const token = await jobToken(service, issuer);
  t.is((await exchange(service, organization, "grant", token)).status, 400);
  await service.storage.organizations.setPlan(organization.id, "growth", OPERATOR);
  t.is(
    (await exchange(service, organization, "grant", token)).status,
    200,
    "the refusal didn't use the token up",
  );
});

test("a compromised rotation revokes the tokens of workloads", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer));
  t.true(await isAcceptedByApi(service, body.access_token));
  await service.storage.clients.rotateSecret(organization.id, { overlapMs: 0, compromised: true }, OPERATOR);
  t.false(await isAcceptedByApi(service, body.access_token));
});

test("the rules of a deleted organization trust nothing", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  await service.storage.organizations.remove(organization.id, OPERATOR);
  const answer = await exchange(service, organization, "grant", await jobToken(service, issuer));
  isRefused(t, "grant", answer, UNTRUSTED);
});

// Serial, because they move the clock.
test.serial("new keys of an issuer are found within 30 seconds, and old ones are then refused", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const before = await jobToken(service, issuer);
  t.is((await exchange(service, organization, "grant", await jobToken(service, issuer))).status, 200);
  await issuer.rotateKeys();
  advanceClock(31 * SECOND_MS);
  t.is((await exchange(service, organization, "grant", await jobToken(service, issuer))).status, 200);
  isRefused(t, "grant", await exchange(service, organization, "grant", before), UNTRUSTED);
});

test.serial("an access token of a workload expires after 15 minutes", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer));
  advanceClock(880 * SECOND_MS);
  t.true(await isAcceptedByApi(service, body.access_token));
  advanceClock(21 * SECOND_MS);
  t.false(await isAcceptedByApi(service, body.access_token));
});
