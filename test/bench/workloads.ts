import { randomBytes } from "node:crypto";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { apiAt } from "../harness/clients/api.ts";
import { get, post } from "./connection.ts";
import type { NextRequest } from "./load.ts";
import type { Subject } from "./measure.ts";
import type { Seeded } from "./seed.ts";
import { type Ours, RESOURCE_SERVER, type Server } from "./workspace.ts";

type Load = Omit<Subject, "name">;

/** T: tokens with the client credentials grant. */
export const issuesTokens = ({ server, host, clients }: Server): Load => ({
  server,
  next: tokens(host, clients),
  expected: 200,
});

/** R: a protected POST that stores a row. */
export async function createsLinks(system: Server): Promise<Load> {
  const { server, host, token = await fetchToken(system) } = system;
  return { server, next: links(host, token), expected: 201 };
}

/** I: introspection by a confidential client. */
export async function introspectsTokens(system: Server | Ours): Promise<Load> {
  const by = "organizationId" in system ? RESOURCE_SERVER : (system.clients[0] as NewClient);
  const next = introspections(system.host, await fetchToken(system), by);
  return { server: system.server, next, expected: 200 };
}

export const followsLink = ({ server, host, slug }: Server): Load => ({
  server,
  next: redirects(host, slug),
  expected: 302,
});

function form(host: string, path: string, fields: Record<string, string>, by: NewClient): string {
  const body = new URLSearchParams({ ...fields, client_id: by.clientId, client_secret: by.clientSecret });
  return post(host, path, "application/x-www-form-urlencoded", body.toString());
}

const inTurn =
  (requests: string[]): NextRequest =>
  (index) =>
    requests[index % requests.length] as string;

const TOKEN = { grant_type: "client_credentials", scope: "links:write webhooks:write" };

/** Tokens with two scopes. The clients take turns. */
export const tokens = (host: string, clients: NewClient[]): NextRequest =>
  inTurn(clients.map((client) => form(host, "/oauth/token", TOKEN, client)));

const LINK = JSON.stringify({ url: "https://example.com/some/page?of=the&bench=1" });

export const links = (host: string, token: string, headers = ""): NextRequest =>
  inTurn([post(host, "/v1/links", "application/json", LINK, `Authorization: Bearer ${token}\r\n${headers}`)]);

export const introspections = (host: string, token: string, by: NewClient): NextRequest =>
  inTurn([form(host, "/oauth/introspect", { token, token_type_hint: "access_token" }, by)]);

const BROWSER =
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n";

/** Redirects of a link, followed in a browser: some systems count no bots. */
export const redirects = (host: string, slug: string): NextRequest =>
  inTurn([get(host, `/${slug}`, BROWSER)]);

const REFRESHED = 500;

/** The exchange of authorization codes, once each. Puts the refresh tokens into `refreshTokens`. */
export function exchanges(host: string, seeded: Seeded, refreshTokens: string[]): NextRequest {
  const [client] = seeded.clients as [NewClient];
  const fields = {
    grant_type: "authorization_code",
    code_verifier: seeded.verifier,
    redirect_uri: "https://app.example.com/callback",
  };
  const codes = seeded.codes.values();
  return () => {
    const { value: code } = codes.next();
    if (!code) throw new Error("all codes are used: seed more");
    const text = form(host, "/oauth/token", { ...fields, code }, client);
    // Every answer is parsed in the warm-up only, because that takes the generator's time.
    if (refreshTokens.length >= REFRESHED) return text;
    return { text, answered: (body) => refreshTokens.push(JSON.parse(body).refresh_token) };
  };
}

/** The refresh of tokens, in turn. They are not rotated: the client is confidential, and they are new. */
export const refreshes = (host: string, client: NewClient, refreshTokens: string[]): NextRequest =>
  inTurn(
    refreshTokens.map((refresh_token) =>
      form(host, "/oauth/token", { grant_type: "refresh_token", refresh_token }, client),
    ),
  );

export async function fetchToken({ host, clients }: Pick<Server, "host" | "clients">): Promise<string> {
  const { clientId: client_id, clientSecret: client_secret } = clients[0] as NewClient;
  const body = new URLSearchParams({ ...TOKEN, client_id, client_secret });
  const answer = await fetch(`http://${host}/oauth/token`, { method: "POST", body });
  const { access_token } = (await answer.json()) as { access_token?: string };
  if (!access_token) throw new Error(`${host} issued no token: ${answer.status}`);
  return access_token;
}

export async function timed(address: string, headers: Record<string, string>): Promise<number> {
  const start = performance.now();
  const response = await fetch(address, { headers });
  await response.text();
  if (response.status !== 200) throw new Error(`${address}: ${response.status}`);
  return performance.now() - start;
}

type Registered = { organization: { id: string }; access_token: string };
type Upgraded = { client: { client_id: string; client_secret: string } };

/** Registers the owner of an organization on Premium. */
export async function registerOwner(origin: string, username: string) {
  const json = { username, password: randomBytes(12).toString("hex") };
  const { body: registered } = await apiAt(origin).send<Registered>("POST", "/auth/register", { json });
  const { organization, access_token: session } = registered;
  const path = `/dashboard/organizations/${organization.id}/plan`;
  const upgrade = await apiAt(origin, session).send<Upgraded>("PUT", path, { json: { plan: "premium" } });
  const { client } = upgrade.body;
  return {
    organizationId: organization.id,
    session,
    client: { clientId: client.client_id, clientSecret: client.client_secret },
  };
}
