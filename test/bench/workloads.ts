import type { NewClient } from "../../adapters/oauth/clients.ts";
import { get, post } from "./connection.ts";
import type { NextRequest } from "./load.ts";
import { RESOURCE_SERVER_SECRET } from "./ours.ts";
import type { Seeded } from "./seed.ts";

const FORM = "application/x-www-form-urlencoded";
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

/** T: a token with the client credentials grant and two scopes. The clients take turns. */
export function tokens(host: string, clients: NewClient[]): NextRequest {
  const requests = clients.map((client) =>
    tokenRequest(host, client, { grant_type: "client_credentials", scope: "links:write webhooks:write" }),
  );
  return (index) => requests[index % requests.length] as string;
}

/** R: a protected POST with a JSON body that stores a row. */
export function links(host: string, token: string): NextRequest {
  const request = post(
    host,
    "/v1/links",
    "application/json",
    JSON.stringify({ url: "https://example.com/some/page?of=the&bench=1" }),
    `Authorization: Bearer ${token}\r\n`,
  );
  return () => request;
}

/** Searches of links for a text each. */
export function searches(host: string, token: string, texts: string[]): NextRequest {
  const authorization = `Authorization: Bearer ${token}\r\n`;
  const requests = texts.map((text) => get(host, `/v1/links?search=${text}`, authorization));
  return (index) => requests[index % requests.length] as string;
}

/** I: introspection by a confidential client. */
export function introspections(
  host: string,
  token: string,
  { clientId, clientSecret }: NewClient,
): NextRequest {
  const request = post(
    host,
    "/oauth/introspect",
    FORM,
    form({ token, token_type_hint: "access_token", client_id: clientId, client_secret: clientSecret }),
  );
  return () => request;
}

/** The client that may introspect every token. */
export const resourceServer: NewClient = {
  clientId: "resource-server",
  clientSecret: RESOURCE_SERVER_SECRET,
};

const BROWSER =
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n";

/** The redirect of a short link, followed in a browser: some systems count no bots. */
export function redirects(host: string, slugs: string[]): NextRequest {
  const requests = slugs.map((slug) => get(host, `/${slug}`, BROWSER));
  return (index) => requests[index % requests.length] as string;
}

/** A typical mix: 70% redirects, 20% new links, 10% tokens. */
export function mix(host: string, clients: NewClient[], token: string, slugs: string[]): NextRequest {
  const [redirect, link, grant] = [redirects(host, slugs), links(host, token), tokens(host, clients)];
  return (index) => {
    const turn = index % 10;
    if (turn === 0) return grant(index);
    return turn < 3 ? link(index) : redirect(index);
  };
}

/** The statuses of successful responses in the mix. */
export const MIX_ANSWERS = [200, 201, 302];

/** The exchange of an authorization code, once each. Puts the refresh tokens into `refreshTokens`. */
export function exchanges(host: string, seeded: Seeded, refreshTokens: string[] = []): NextRequest {
  const { codes, verifier } = seeded;
  const [client] = seeded.clients as [NewClient];
  let next = 0;
  return () => {
    const code = codes[next++];
    if (!code) throw new Error("all codes are used: seed more");
    const text = tokenRequest(host, client, {
      grant_type: "authorization_code",
      code,
      code_verifier: verifier,
      redirect_uri: "https://app.example.com/callback",
    });
    // Every answer is parsed in the warm-up only, because that takes the generator's time.
    if (refreshTokens.length >= REFRESHED) return text;
    return { text, answered: (body) => refreshTokens.push(JSON.parse(body).refresh_token) };
  };
}

const REFRESHED = 500;

/** The refresh of tokens, in turn. They are not rotated: the client is confidential, and they are new. */
export function refreshes(host: string, client: NewClient, refreshTokens: string[]): NextRequest {
  const requests = refreshTokens.map((refresh_token) =>
    tokenRequest(host, client, { grant_type: "refresh_token", refresh_token }),
  );
  return (index) => requests[index % requests.length] as string;
}

function tokenRequest(host: string, client: NewClient, fields: Record<string, string>): string {
  const credentials = { client_id: client.clientId, client_secret: client.clientSecret };
  return post(host, "/oauth/token", FORM, form({ ...fields, ...credentials }));
}

/** Fetches one token, for the workloads that need one. */
export async function fetchToken(host: string, { clientId, clientSecret }: NewClient): Promise<string> {
  const answer = await fetch(`http://${host}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret,
      scope: "links:write webhooks:write",
    }),
  });
  const { access_token } = (await answer.json()) as { access_token?: string };
  if (!access_token) throw new Error(`${host} issued no token: ${answer.status}`);
  return access_token;
}
