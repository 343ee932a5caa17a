import test from "ava";
import { createClient, LinkgateError } from "../../../client/src/index.ts";
import { loseResponse, startHttpProxy } from "../../harness/clients/http-proxy.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { createTrustingOrganization, jobToken } from "../../harness/clients/workload.ts";
import { advanceClock, MINUTE_MS } from "../../harness/clock.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);

async function startProxy() {
  const proxy = await startHttpProxy(service.url);
  const tokenRequests = () => proxy.requests.filter(({ path }) => path === "/oauth/token").length;
  const lastToken = () => proxy.requests.at(-1)?.headers.authorization?.replace("Bearer ", "") ?? "";
  return { proxy, tokenRequests, lastToken };
}

// They share a clock.
test.serial("concurrent calls wait for one token, and for the same new one if it was revoked", async (t) => {
  const { proxy, tokenRequests, lastToken } = await startProxy();
  const organization = await service.createOrganization();
  const linkgate = createClient({ baseUrl: proxy.url, ...organization });
  const all = await Promise.all(Array.from({ length: 20 }, () => linkgate.getOrganization()));
  t.deepEqual([...new Set(all.map(({ id }) => id))], [organization.id]);
  t.is(tokenRequests(), 1);
  await postAsClient(service, "revoke", organization, { token: lastToken() });
  await Promise.all(Array.from({ length: 20 }, () => linkgate.createLink({ url: "https://example.com/" })));
  t.is(tokenRequests(), 2);
  t.is((await linkgate.getOrganization()).usage.links, 20);
});

test.serial("a token is renewed before it expires", async (t) => {
  const { proxy, tokenRequests } = await startProxy();
  const linkgate = createClient({ baseUrl: proxy.url, ...(await service.createOrganization()) });
  await linkgate.getOrganization();
  advanceClock(50 * MINUTE_MS);
  await linkgate.getOrganization();
  t.is(tokenRequests(), 1);
  advanceClock(8 * MINUTE_MS);
  await linkgate.getOrganization();
  t.is(tokenRequests(), 2);
  t.true(proxy.requests.every(({ status }) => status === 200));
});

test.serial("a token has the requested scope only", async (t) => {
  const organization = await service.createOrganization();
  const linkgate = createClient({ baseUrl: service.url, ...organization, scope: "links:read" });
  await linkgate.listLinks();
  const refused = linkgate.createLink({ url: "https://example.com/" });
  t.is((await t.throwsAsync(refused, { instanceOf: LinkgateError })).code, "insufficient_scope");
});

test.serial("a workload gets a token for a new one each time, also if the response is lost", async (t) => {
  const { proxy, tokenRequests } = await startProxy();
  const { clientId } = await createTrustingOrganization(service, issuer);
  proxy.once("/oauth/token", loseResponse);
  const workloadToken = () => jobToken(service, issuer);
  const linkgate = createClient({ baseUrl: proxy.url, clientId, workloadToken });
  const link = await linkgate.createLink({ url: "https://example.com/" });
  t.is((await linkgate.getLink({ id: link.id })).url, "https://example.com/");
  t.is(tokenRequests(), 2);
});

test.serial("an access token of the application is sent, and replaced after it was rejected", async (t) => {
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  const fixed = createClient({ baseUrl: service.url, accessToken: token });
  t.is((await fixed.getOrganization()).id, organization.id);
  const tokens = ["lga_expired", token];
  const renewed = createClient({ baseUrl: service.url, accessToken: () => tokens.shift() ?? "" });
  t.is((await renewed.getOrganization()).id, organization.id);
});

test.serial("without valid credentials, each call throws a typed error", async (t) => {
  const { clientId } = await service.createOrganization();
  const trusting = await createTrustingOrganization(service, issuer);
  const workloadToken = () => jobToken(service, issuer, { sub: "repo:other/other" });
  for (const [credentials, status, code] of [
    [{ clientId, clientSecret: "lgs_wrong" }, 401, "invalid_client"],
    [{ clientId: trusting.clientId, workloadToken }, 400, "invalid_grant"],
    [{ accessToken: "lga_unknown" }, 401, "invalid_token"],
    [{ accessToken: async () => "lga_unknown" }, 401, "invalid_token"],
  ] as const) {
    const linkgate = createClient({ baseUrl: service.url, ...credentials });
    for (let times = 0; times < 2; times++) {
      const error = await t.throwsAsync(linkgate.listLinks(), { instanceOf: LinkgateError });
      t.like(error, { status, code });
      t.not(error.detail, "");
    }
  }
});

test.serial("an error of the function that returns the token of a workload is thrown as it is", async (t) => {
  const missing = new Error("LINKGATE_ID_TOKEN is not set");
  const workloadToken = () => Promise.reject(missing);
  const linkgate = createClient({ baseUrl: service.url, clientId: "lgc_1", workloadToken });
  t.is(await t.throwsAsync(linkgate.getOrganization()), missing);
});
