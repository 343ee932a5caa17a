import test from "ava";
import { type Fields, formOf, postAsClient, read } from "../../harness/clients/oauth.ts";
import { createTrustingOrganization, exchange, FORMS, jobToken } from "../../harness/clients/workload.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
const organization = await createTrustingOrganization(service, issuer);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

const REQUESTS: [what: string, fields: Fields, status: number, error: string][] = [
  ["no assertion", { assertion: undefined }, 400, "invalid_request"],
  ["an empty assertion", { assertion: "" }, 400, "invalid_request"],
  ["no client ID", { client_id: undefined }, 400, "invalid_request"],
  ["only scopes that no rule allows", { scope: "webhooks:write" }, 400, "invalid_scope"],
  ["an unknown scope", { scope: "links:write admin" }, 400, "invalid_scope"],
  ["another resource", { resource: "https://evil.example" }, 400, "invalid_target"],
];

for (const [what, fields, status, error] of REQUESTS) {
  test(`a request with ${what} is refused, and the token can still be used`, async (t) => {
    const token = await jobToken(service, issuer);
    const refused = await exchange(service, organization, "grant", token, fields);
    t.is(refused.body.error, error, refused.text);
    t.is(refused.status, status);
    t.is((await exchange(service, organization, "grant", token)).status, 200);
  });
}

test("repeated assertions are refused", async (t) => {
  const token = await jobToken(service, issuer);
  const { status, body } = await exchange(service, organization, "grant", token, {
    assertion: [token, token],
  });
  t.is(status, 400);
  t.is(body.error, "invalid_request");
});

test("an assertion beside a secret is refused", async (t) => {
  const token = await jobToken(service, issuer);
  const fields = FORMS.grant.fields(token);
  const withBasic = await postAsClient(service, "token", organization, fields);
  t.is(withBasic.body.error, "invalid_request");
  const { clientSecret: client_secret } = organization;
  const posted = await exchange(service, organization, "grant", token, { client_secret });
  t.is(posted.body.error, "invalid_request");
  const both = await exchange(service, organization, "client_assertion", token, { client_secret });
  t.is(both.body.error, "invalid_request");
});

const OTHER_REQUESTS: [endpoint: string, fields: Fields][] = [
  ["revoke", { token: "lga_unknown" }],
  ["introspect", { token: "lga_unknown" }],
  ["par", { response_type: "code", redirect_uri: "https://app.example.com/callback" }],
  ["token", { grant_type: "refresh_token", refresh_token: "lgr_unknown" }],
  ["token", { grant_type: "authorization_code", code: "unknown" }],
];

for (const [endpoint, fields] of OTHER_REQUESTS) {
  test(`the token of a workload doesn't authenticate ${fields.grant_type ?? "a request"} at /oauth/${endpoint}`, async (t) => {
    const assertion = FORMS.client_assertion.fields(await jobToken(service, issuer));
    const body = formOf({ ...assertion, grant_type: undefined, client_id: organization.clientId, ...fields });
    const answer = await read(postForm(`${service.url}/oauth/${endpoint}`, body));
    t.is(answer.status, 401, answer.text);
    t.is(answer.body.error, "invalid_client");
  });
}
