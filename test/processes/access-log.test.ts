import { randomBytes } from "node:crypto";
import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { bearer, postForm } from "../harness/service.ts";

export const databases = "all";

test.after.always(stopPrograms);

type Me = { user: { id: string }; organizations: { id: string }[] };
type Line = { msg: string; status: number; route: string; [member: string]: unknown };

/** Returns the lines of the requests that `send` sends to a server with the demo organization. */
async function loggedRequests(
  settings: Record<string, string>,
  send: (url: string, page: string) => Promise<void>,
): Promise<Line[]> {
  const database = await createTestDatabase();
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const server = startServer({
    settings: { DATABASE_URL: database.url, ENCRYPTION_KEY, PORT: "0", ...settings },
  });
  const url = await addressOf(server);
  await send(url, server.stdout);
  const { stdout } = await server.stop();
  await database.drop();
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "request");
}

/** Returns the status of each request that a server logs. */
async function loggedStatuses(settings: Record<string, string>): Promise<number[]> {
  const lines = await loggedRequests(settings, async (url) => {
    for (const path of ["/oauth/jwks", "/oauth/jwks", "/no-such-link", "/v1/links"]) await fetch(url + path);
  });
  return lines.map(({ status }) => status);
}

test("every request is logged by default", async (t) => {
  t.deepEqual(await loggedStatuses({}), [200, 200, 404, 401]);
});

test("with ACCESS_LOG_SAMPLE=0, only requests that fail are logged", async (t) => {
  t.deepEqual(await loggedStatuses({ ACCESS_LOG_SAMPLE: "0" }), [404, 401]);
});

if (engine === "sqlite")
  test("a line says which client, user and organization sent a request, and the address that TRUST_PROXY decides", async (t) => {
    let [clientId, userId, organizationId] = ["", "", ""];
    const lines = await loggedRequests({ TRUST_PROXY: "1" }, async (url, page) => {
      const [, id = "", secret = ""] = /client id {6}(\S+)\n {2}client secret {2}(\S+)/.exec(page) ?? [];
      const [, password = ""] = /password {7}(\S+)/.exec(page) ?? [];
      const form = { grant_type: "client_credentials", client_id: id, client_secret: secret };
      const headers = { "X-Forwarded-For": "198.51.100.1, 203.0.113.9" };
      const issued = await postForm(`${url}/oauth/token`, form, headers);
      const { access_token } = (await issued.json()) as { access_token: string };
      await fetch(`${url}/v1/links`, { headers: { ...headers, ...bearer(access_token) } });
      const own = apiAt(url, await firstPartyToken({ url }, { id: "", username: "demo", password }));
      const { body } = await own.get<Me>("/dashboard/me");
      clientId = id;
      userId = body.user.id;
      organizationId = body.organizations[0]?.id ?? "";
      await own.get(`/dashboard/organizations/${organizationId}/client`);
    });
    const about = (route: string) => lines.find((line) => line.route === route) ?? {};
    const address = "203.0.113.9";
    t.like(about("/oauth/token"), { address, client_id: clientId });
    t.like(about("/v1/links"), { address, client_id: clientId, organization_id: organizationId });
    t.like(about("/dashboard/me"), { user_id: userId });
    t.like(about("/dashboard/organizations/:id/client"), {
      user_id: userId,
      organization_id: organizationId,
    });
  });
