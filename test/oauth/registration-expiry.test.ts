import test from "ava";
import { connectRegistered } from "../harness/clients/authorization.ts";
import { authorizeUrl } from "../harness/clients/authorization-request.ts";
import {
  isAcceptedByApi,
  postAsClient,
  RESOURCE_SERVER,
  type RegisteredClient,
  read,
  register,
  requestTokens,
} from "../harness/clients/oauth.ts";
import { advanceClock, DAY_MS } from "../harness/clock.ts";
import { startWithStorage } from "../harness/database/service-storage.ts";
import { bearer, postForm, startTestService, type TestService } from "../harness/service.ts";

const { service, settings } = await startWithStorage({
  DYNAMIC_REGISTRATION: "stateless",
  RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret,
});

const REDIRECT_URI = "http://127.0.0.1/callback";
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");

const authorize = (client: RegisteredClient, at: TestService = service) =>
  fetch(authorizeUrl(at, client, { redirect_uri: client.redirectUri }), { redirect: "manual" });

test("when the operator turns registration off, registered clients are unknown and their access ends", async (t) => {
  const client = await register(service, { redirect_uris: [REDIRECT_URI] });
  const { body } = await connectRegistered(service, client, user);
  const restartWith = async (DYNAMIC_REGISTRATION: string) => {
    const restarted = await startTestService({ ...settings, DYNAMIC_REGISTRATION });
    const { status } = await authorize(client, restarted);
    // Its port, and so its resource, is another: the API would reject every token.
    const token = await restarted.storage.findActiveToken(String(body.access_token));
    return { isKnown: status === 303, isAccepted: token !== undefined };
  };
  t.deepEqual(await restartWith("off"), { isKnown: false, isAccepted: false });
  t.deepEqual(await restartWith("stateless"), { isKnown: true, isAccepted: true });
});

test.serial("a registration expires after 90 days, and the error says so", async (t) => {
  const client = await register(service, { redirect_uris: [REDIRECT_URI] });
  advanceClock(90 * DAY_MS - 1000);
  t.is((await authorize(client)).status, 303);
  advanceClock(DAY_MS + 1000);
  const page = await authorize(client);
  t.is(page.status, 400);
  t.is(page.headers.get("location"), null);
  t.regex(await page.text(), /Registration expired/);
  const fields = { grant_type: "refresh_token", refresh_token: "lgr_unknown" };
  const { body } = await requestTokens(service, client, fields);
  t.is(body.error, "invalid_client");
  t.regex(String(body.error_description), /registration of the client has expired/);
  const revocation = { client_id: client.clientId, token: "lga_unknown" };
  const { status } = await postForm(`${service.url}/oauth/revoke`, revocation);
  t.is(status, 200, "it may still end its access");
});

test.serial("an access token outlives the registration, also for introspection and userinfo", async (t) => {
  const client = await register(service, { redirect_uris: [REDIRECT_URI] });
  advanceClock(90 * DAY_MS);
  const { body } = await connectRegistered(service, client, user, {
    resource: service.url,
    scope: "openid links:read",
  });
  const token = String(body.access_token);
  // The registration ends with a day (UTC).
  advanceClock(DAY_MS - (Date.now() % DAY_MS) - 30 * 60_000);
  const renewed = await requestTokens(service, client, {
    grant_type: "refresh_token",
    refresh_token: String(body.refresh_token),
  });
  t.is(renewed.status, 200, token);
  advanceClock(45 * 60_000);
  const access = String(renewed.body.access_token);
  t.is((await authorize(client)).status, 400);
  t.true(await isAcceptedByApi(service, access));
  const introspected = await postAsClient(service, "introspect", RESOURCE_SERVER, { token: access });
  t.true(introspected.body.active, introspected.text);
  const userinfo = await read(fetch(`${service.url}/oauth/userinfo`, { headers: bearer(access) }));
  t.is(userinfo.body.sub, user.id, userinfo.text);
});
