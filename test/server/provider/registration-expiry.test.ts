import test from "ava";
import { authorizeUrl, read } from "../../harness/clients/oauth.ts";
import { connectRegistered, register, requestTokens } from "../../harness/clients/registration.ts";
import { createSelfRegisteringHost } from "../../harness/clients/self-registering.ts";
import { advanceClock } from "../../harness/clock.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const REDIRECT_URI = "http://127.0.0.1/callback";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");
test.after.always(() => service.close());

test.serial(
  "a registration expires after 90 days, and the user and the app get an error that says so",
  async (t) => {
    const client = await register(service, { redirect_uris: [REDIRECT_URI] });
    const authorize = () =>
      fetch(authorizeUrl(service, client, { redirect_uri: REDIRECT_URI }), { redirect: "manual" });
    advanceClock(90 * DAY_MS - 1000);
    t.is((await authorize()).status, 303);
    advanceClock(DAY_MS + 1000);
    const page = await authorize();
    t.is(page.status, 400);
    t.is(page.headers.get("location"), null);
    t.regex(await page.text(), /Registration expired/);
    const fields = { grant_type: "refresh_token", refresh_token: "lgr_unknown" };
    const { body } = await requestTokens(service, client, fields);
    t.is(body.error, "invalid_client");
    t.regex(String(body.error_description), /registration of the client has expired/);
    const revocation = { client_id: client.clientId, token: "lga_unknown" };
    t.is(
      (await postForm(`${service.url}/oauth/revoke`, revocation)).status,
      200,
      "it may still end its access",
    );
  },
);

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
  const authorize = authorizeUrl(service, client, { redirect_uri: REDIRECT_URI });
  t.is((await fetch(authorize, { redirect: "manual" })).status, 400);
  const { status } = await fetch(`${service.url}/v1/organization`, { headers: bearer(access) });
  t.is(status, 200);
  const fields = { client_id: client.clientId, token: access };
  const introspected = await read(postForm(`${service.url}/oauth/introspect`, fields));
  t.true(introspected.body.active, introspected.text);
  const { userinfo_endpoint } = (await read(fetch(`${service.url}/.well-known/openid-configuration`))).body;
  const userinfo = await read(fetch(String(userinfo_endpoint), { headers: bearer(access) }));
  t.is(userinfo.body.sub, user.id, userinfo.text);
});

test.serial("the MCP SDK's client registers again when its registration has expired", async (t) => {
  const host = createSelfRegisteringHost(service, user);
  await (await host.connect()).close();
  const first = host.state.client?.client_id;
  advanceClock(91 * DAY_MS);
  const client = await host.connect();
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { client_id: host.state.client?.client_id, user_id: user.id });
  t.not(host.state.client?.client_id, first);
  await client.close();
});
