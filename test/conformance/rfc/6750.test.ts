import test from "ava";
import { runCodeFlow, shareApp } from "../../harness/clients/authorization.ts";
import { challengesIn } from "../../harness/clients/challenge.ts";
import { bearer } from "../../harness/service.ts";

const { service, app, user } = await shareApp();
const { accessToken } = await runCodeFlow(service, app, user, { changes: { scope: "webhooks:read" } });

const REFUSED: Record<string, [path: string, headers: Record<string, string>]> = {
  "without a token": ["", {}],
  "with an unknown token": ["", bearer("lga_unknown")],
  "with a malformed token": ["", bearer('é "\\" é')],
  "with a second token in the query": ["?access_token=x", bearer(accessToken)],
};
const LACKS_SCOPE: typeof REFUSED = { "with a token that lacks the scope": ["", bearer(accessToken)] };

for (const [path, method, requests] of [
  ["/oauth/userinfo", "GET", { ...REFUSED, ...LACKS_SCOPE }],
  ["/dashboard/me", "GET", REFUSED],
] as const)
  for (const [what, [query, headers]] of Object.entries(requests))
    test(`${path} answers a request ${what} with a challenge of well-formed parameters, none repeated`, async (t) => {
      const accept = "application/json";
      const response = await fetch(service.url + path + query, { method, headers: { accept, ...headers } });
      t.true([400, 401, 403].includes(response.status), String(response.status));
      t.truthy(challengesIn(response.headers.get("www-authenticate") ?? "").Bearer);
    });
