import test from "ava";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { connectRegistered, register, requestTokens } from "../../harness/clients/registration.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");
test.after.always(() => service.close());

test("the refresh token of a public client is rotated, and its replay ends the grant", async (t) => {
  const client = await register(service, { redirect_uris: ["http://127.0.0.1/callback"] });
  const refresh = (token: unknown) =>
    requestTokens(service, client, { grant_type: "refresh_token", refresh_token: String(token) });
  const first = await connectRegistered(service, client, user, { resource: service.urls.api });
  const second = await refresh(first.body.refresh_token);
  t.is(second.status, 200, second.text);
  t.not(second.body.refresh_token, first.body.refresh_token);
  t.true(await isAcceptedByApi(service, second.body.access_token));
  advanceClock(121_000);
  t.is((await refresh(first.body.refresh_token)).body.error, "invalid_grant");
  t.false(await isAcceptedByApi(service, second.body.access_token));
  t.is((await refresh(second.body.refresh_token)).body.error, "invalid_grant");
});
