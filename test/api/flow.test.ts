import test from "ava";
import * as oidc from "openid-client";
import { discover, tokensFor } from "../harness/clients/authorization.ts";
import { bearer, startTestService } from "../harness/service.ts";

export const databases = "all";

const service = await startTestService();

test("an app authorized by a user can use the API for the chosen organization", async (t) => {
  const app = await service.createOrganization();
  const own = await service.createOrganization();
  const user = await service.createUser([own.id]);
  const tokens = await tokensFor(service, app, user, { parameters: { scope: "openid links:write" } });
  t.is(tokens.scope, "openid links:write");
  t.is(tokens.claims()?.sub, user.id);
  const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(tokens.access_token) });
  t.is(((await answer.json()) as { id: string }).id, own.id);
  const config = await discover(service, app);
  const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string);
  t.is(refreshed.scope, "openid links:write");
  await oidc.tokenRevocation(config, refreshed.refresh_token as string);
  const { active } = await oidc.tokenIntrospection(config, refreshed.access_token);
  t.false(active);
});
