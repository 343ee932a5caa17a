import { bearer, postForm, type TestOrganization, type TestService } from "../service.ts";
import { type Reply, read as readReply } from "./api.ts";
import { type Fields, formOf, REDIRECT_URI, VERIFIER } from "./authorization-request.ts";

export type Answer = Reply<Record<string, unknown>>;

/** Reads a response; `body` is empty unless it is a JSON object. */
export async function read(pending: Promise<Response>): Promise<Answer> {
  const reply = await readReply<Answer["body"] | undefined>(await pending);
  return { ...reply, body: reply.body ?? {} };
}

/** Returns the status of a response, with the code of its error if it has one. */
export async function outcomeOf(pending: Promise<Answer>): Promise<string> {
  const { status, body } = await pending;
  return body.error ? `${status} ${body.error}` : String(status);
}

/** The client of resources that run as a separate service, with the secret that `RESOURCE_SERVER_SECRET` has to be. */
export const RESOURCE_SERVER: TestOrganization = {
  id: "",
  name: "",
  clientId: "resource-server",
  clientSecret: "a-secret-of-the-resource-server-0123456789",
};

export function basic({ clientId, clientSecret }: Pick<TestOrganization, "clientId" | "clientSecret">) {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}` };
}

export function postAsClient(service: TestService, endpoint: string, app: TestOrganization, fields: Fields) {
  return read(postForm(`${service.url}/oauth/${endpoint}`, formOf(fields), basic(app)));
}

export function redeemCode(service: TestService, app: TestOrganization, code: string, changes: Fields = {}) {
  return postAsClient(service, "token", app, { ...redemptionOf(code), ...changes });
}

export function redemptionOf(code: string) {
  return { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, code_verifier: VERIFIER };
}

export function refresh(service: TestService, app: TestOrganization, token: string, fields: Fields = {}) {
  const refreshing = { grant_type: "refresh_token", refresh_token: token };
  return postAsClient(service, "token", app, { ...refreshing, ...fields });
}

export async function isAcceptedByApi(service: TestService, token: unknown): Promise<boolean> {
  const { status } = await fetch(`${service.url}/v1/organization`, { headers: bearer(String(token)) });
  if (status !== 200 && status !== 401) throw new Error(`unexpected status ${status}`);
  return status === 200;
}

export type RegisteredClient = { clientId: string; redirectUri: string };

export function postRegistration(service: TestService, body: unknown, headers: object = {}): Promise<Answer> {
  return read(
    fetch(`${service.url}/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  );
}

export async function register(
  service: TestService,
  metadata: { redirect_uris: string[]; client_name?: string },
): Promise<RegisteredClient> {
  const { status, body, text } = await postRegistration(service, metadata);
  if (status !== 201) throw new Error(`the registration failed: ${text}`);
  return { clientId: String(body.client_id), redirectUri: metadata.redirect_uris[0] as string };
}

/** Sends a token request of a registered client, which is public. */
export function requestTokens(
  service: TestService,
  { clientId }: Pick<RegisteredClient, "clientId">,
  fields: Fields,
): Promise<Answer> {
  return read(postForm(`${service.url}/oauth/token`, formOf({ client_id: clientId, ...fields })));
}
