import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import type { Ending } from "../harness/program.ts";
import { bearer } from "../harness/service.ts";

type Line = { msg: string; status: number; route: string; [member: string]: unknown };

function requestsIn({ stdout }: Ending): Line[] {
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
}

test("with ACCESS_LOG_SAMPLE=0, only requests that fail are logged", async (t) => {
  const { url, stop } = await startOnNewDatabase({ ACCESS_LOG_SAMPLE: "0" });
  for (const path of ["/oauth/jwks", "/no-such-link", "/v1/links"]) await fetch(url + path);
  const statuses = requestsIn(await stop()).map(({ status }) => status);
  t.deepEqual(statuses, [404, 401]);
});

test("by default, every request is a JSON line with its client, user and organization, and the address that TRUST_PROXY decides", async (t) => {
  const { url, createOrganization, createUser, token, stop } = await startOnNewDatabase({ TRUST_PROXY: "1" });
  const app = await createOrganization();
  const user = await createUser([app.id], undefined, "owner");
  const address = "203.0.113.9";
  const forwarded = { "X-Forwarded-For": `198.51.100.1, ${address}` };
  await fetch(`${url}/v1/links`, { headers: { ...forwarded, ...bearer(await token(app)) } });
  const own = apiAt(url, await firstPartyToken({ url }, user));
  await own.get("/dashboard/me", forwarded);
  await own.get(`/dashboard/organizations/${app.id}/client`);

  const lines = requestsIn(await stop());
  const about = (route: string) => lines.find((line) => line.route === route) ?? {};
  const issued = about("/oauth/token");
  t.deepEqual(Object.keys(issued).sort(), [
    ...["address", "client_id", "level", "method", "ms", "msg", "request_id", "route", "status", "time"],
  ]);
  t.like(issued, { level: "info", method: "POST", status: 200, client_id: app.clientId });
  t.like(about("/v1/links"), { address, client_id: app.clientId, organization_id: app.id });
  t.like(about("/dashboard/me"), { address, user_id: user.id });
  t.like(about("/dashboard/organizations/:id/client"), { user_id: user.id, organization_id: app.id });
});
