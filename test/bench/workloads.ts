import { randomBytes } from "node:crypto";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { get, type NextRequest, post } from "./load.ts";
import { RESOURCE_SERVER_SECRET, VERIFIER } from "./ours.ts";

const FORM = "application/x-www-form-urlencoded";
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

/** T: a token with the client credentials grant and two scopes. The clients take turns. */
export function tokens(host: string, clients: NewClient[]): NextRequest {
  const requests = clients.map(({ clientId, clientSecret }) =>
    post(
      host,
      "/oauth/token",
      FORM,
      form({
        grant_type: "client_credentials",
        client_id: clientId,
        client_secret: clientSecret,
        scope: "links:write webhooks:write",
      }),
    ),
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

/** The redirect of a short link. */
export function redirects(host: string, slugs: string[]): NextRequest {
  const requests = slugs.map((slug) => get(host, `/${slug}`));
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

/** The exchange of an authorization code, once each. */
export function exchanges(host: string, { clientId, clientSecret }: NewClient, codes: string[]): NextRequest {
  let next = 0;
  return () => {
    const code = codes[next++];
    if (!code) throw new Error("all codes are used: seed more");
    return post(
      host,
      "/oauth/token",
      FORM,
      form({
        grant_type: "authorization_code",
        code,
        code_verifier: VERIFIER,
        redirect_uri: "https://app.example.com/callback",
        client_id: clientId,
        client_secret: clientSecret,
      }),
    );
  };
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

/** A client that only a reference server knows. */
export function inventClient(): NewClient {
  return {
    clientId: `lgc_${randomBytes(16).toString("base64url")}`,
    clientSecret: randomBytes(32).toString("base64url"),
  };
}
