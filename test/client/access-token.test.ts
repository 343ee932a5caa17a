import test, { type ExecutionContext } from "ava";
import { createClient, LinkgateError } from "../../client/src/index.ts";
import { loseResponse, startHttpProxy } from "../harness/clients/http-proxy.ts";
import { createTrustingOrganization, jobToken } from "../harness/clients/workload.ts";
import { advanceClock } from "../harness/clock.ts";
import { startTokenIssuer } from "../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

async function startProxy(t: ExecutionContext) {
  const proxy = await startHttpProxy(service.url);
  t.teardown(proxy.close);
  const tokenRequests = () => proxy.requests.filter(({ path }) => path === "/oauth/token").length;
  /** Returns the access token of the last request. */
  const lastToken = () => proxy.requests.at(-1)?.headers.authorization?.replace("Bearer ", "") ?? "";
  return { proxy, tokenRequests, lastToken };
}

const MINUTE_MS = 60_000;

// They share a clock.
test.serial("concurrent calls wait for one token", async (t) => {
  const { proxy, tokenRequests } = await startProxy(t);
  const organization = await service.createOrganization();
  const linkgate = createClient({ baseUrl: proxy.url, ...organization });
  const all = await Promise.all(Array.from({ length: 20 }, () => linkgate.getOrganization()));
  t.deepEqual([...new Set(all.map(({ id }) => id))], [organization.id]);
  t.is(tokenRequests(), 1);
});

test.serial("a token that was revoked is replaced, and concurrent calls get the same new one", async (t) => {
  const { proxy, tokenRequests, lastToken } = await startProxy(t);
  const { clientId, clientSecret } = await service.createOrganization();
  const linkgate = createClient({ baseUrl: proxy.url, clientId, clientSecret });
  await linkgate.getOrganization();
  await postForm(`${service.url}/oauth/revoke`, {
    token: lastToken(),
    client_id: clientId,
    client_secret: clientSecret,
  });
  await Promise.all(Array.from({ length: 20 }, () => linkgate.createLink({ url: "https://example.com/" })));
  t.is(tokenRequests(), 2);
  t.is((await linkgate.getOrganization()).usage.links, 20);
});

test.serial("a token is renewed before it expires", async (t) => {
  const { proxy, tokenRequests } = await startProxy(t);
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

test.serial(
  "a workload gets a token for a new one of its platform, also if the response is lost",
  async (t) => {
    const { proxy, tokenRequests } = await startProxy(t);
    const { clientId } = await createTrustingOrganization(service, issuer);
    proxy.once("/oauth/token", loseResponse);
    const linkgate = createClient({
      baseUrl: proxy.url,
      clientId,
      workloadToken: () => jobToken(service, issuer),
    });
    const link = await linkgate.createLink({ url: "https://example.com/" });
    t.is((await linkgate.getLink({ id: link.id })).url, "https://example.com/");
    t.is(tokenRequests(), 2);
  },
);

test.serial("an access token of the application is sent, and replaced after it was rejected", async (t) => {
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  const fixed = createClient({ baseUrl: service.url, accessToken: token });
  t.is((await fixed.getOrganization()).id, organization.id);
  const tokens = ["lga_expired", token];
  const renewed = createClient({ baseUrl: service.url, accessToken: () => tokens.shift() ?? "" });
  t.is((await renewed.getOrganization()).id, organization.id);
});

const REFUSED: Record<
  string,
  () => Promise<[Parameters<typeof createClient>[0], status: number, code: string]>
> = {
  async "a wrong secret"() {
    const { clientId } = await service.createOrganization();
    return [{ baseUrl: service.url, clientId, clientSecret: "lgs_wrong" }, 401, "invalid_client"];
  },
  async "a scope that doesn't exist"() {
    const organization = await service.createOrganization();
    return [{ baseUrl: service.url, ...organization, scope: "links:everything" }, 400, "invalid_scope"];
  },
  async "an organization without API access"() {
    const organization = await service.createOrganization();
    await service.storage.organizations.setPlan(organization.id, "free", { id: "operator" });
    return [{ baseUrl: service.url, ...organization }, 400, "unauthorized_client"];
  },
  async "a workload that isn't trusted"() {
    const { clientId } = await createTrustingOrganization(service, issuer);
    const workloadToken = () => jobToken(service, issuer, { sub: "repo:other/other" });
    return [{ baseUrl: service.url, clientId, workloadToken }, 400, "invalid_grant"];
  },
  async "an access token that is unknown"() {
    return [{ baseUrl: service.url, accessToken: "lga_unknown" }, 401, "invalid_token"];
  },
  async "a function that returns the same unknown access token again"() {
    return [{ baseUrl: service.url, accessToken: async () => "lga_unknown" }, 401, "invalid_token"];
  },
};

for (const [what, create] of Object.entries(REFUSED)) {
  test.serial(`with ${what}, each call throws a typed error`, async (t) => {
    const [options, status, code] = await create();
    const linkgate = createClient(options);
    for (let times = 0; times < 2; times++) {
      const error = await t.throwsAsync(linkgate.listLinks(), { instanceOf: LinkgateError });
      t.is(error.status, status);
      t.is(error.code, code as LinkgateError["code"]);
      t.not(error.detail, "");
    }
  });
}

test.serial("an error of the function that returns the token of a workload is thrown as it is", async (t) => {
  const missing = new Error("LINKGATE_ID_TOKEN is not set");
  const workloadToken = () => Promise.reject(missing);
  const linkgate = createClient({ baseUrl: service.url, clientId: "lgc_1", workloadToken });
  t.is(await t.throwsAsync(linkgate.getOrganization()), missing);
});
