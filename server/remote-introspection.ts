import type { ActiveToken, Introspect } from "../resources/access/introspect.ts";
import { UNAVAILABLE } from "../resources/http/problem.ts";
import { type TraceOutgoing, untraced } from "../resources/outbound/guarded-fetch.ts";
import { isPlan, type Plan } from "../resources/plans.ts";
import type { Settings } from "./settings/config.ts";

export class IntrospectionUnavailable extends Error {
  override readonly name = "IntrospectionUnavailable";
  readonly code = UNAVAILABLE;
  constructor(cause: unknown) {
    super("the authorization server did not respond", { cause });
  }
}

const TIMEOUT_MS = 5000;

type Credentials = Pick<Settings, "INTROSPECTION_CLIENT_ID" | "INTROSPECTION_CLIENT_SECRET">;

/** RFC 7662. The authorization server knows this client as `resource-server`. */
export function createRemoteIntrospect(
  url: string,
  { INTROSPECTION_CLIENT_ID: id, INTROSPECTION_CLIENT_SECRET: secret }: Credentials,
  trace: TraceOutgoing = untraced,
): Introspect {
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;

  return async (token) => {
    let body: IntrospectionResponse;
    try {
      const response = await trace({ method: "POST", url }, (traceHeaders) =>
        fetch(url, {
          method: "POST",
          headers: { ...traceHeaders, authorization, accept: "application/json" },
          body: new URLSearchParams({ token, token_type_hint: "access_token" }),
          redirect: "error",
          signal: AbortSignal.timeout(TIMEOUT_MS),
        }),
      );
      if (!response.ok) throw new Error(`introspection returned ${response.status}`);
      body = (await response.json()) as IntrospectionResponse;
    } catch (error) {
      throw new IntrospectionUnavailable(error);
    }
    return body.active ? toActiveToken(body) : undefined;
  };
}

type IntrospectionResponse = {
  active: boolean;
  client_id?: string;
  sub?: string;
  organization_id?: string;
  plan?: Plan;
  suspended?: boolean;
  scope?: string;
  aud?: string;
  exp?: number;
  /** RFC 9449 §6.2 */
  cnf?: { jkt?: string };
};

function toActiveToken(response: IntrospectionResponse): ActiveToken | undefined {
  const { client_id: clientId, organization_id: organizationId, plan, suspended } = response;
  const { aud, exp, scope = "", sub, cnf } = response;
  if (!clientId || !organizationId || !isPlan(plan) || typeof aud !== "string" || typeof exp !== "number")
    return undefined;
  return {
    clientId,
    organizationId,
    plan,
    scopes: new Set(scope.split(" ").filter(Boolean)),
    audience: aud,
    expiresAt: exp,
    // The subject of a client-credentials token is the client.
    ...(sub && sub !== clientId && { userId: sub }),
    ...(cnf?.jkt && { jkt: cnf.jkt }),
    ...(suspended && { suspended: true }),
  };
}
