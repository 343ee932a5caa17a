import type { ActiveToken, Introspect } from "../resources/access/introspect.ts";
import { UNAVAILABLE } from "../resources/http/unavailable.ts";
import { type TraceOutgoing, untraced } from "../resources/outbound/outgoing-trace.ts";
import type { Plan } from "../resources/plans.ts";
import { isPlan } from "../resources/plans.ts";

/** The authorization server could not be reached, or returned an error. */
export class IntrospectionUnavailable extends Error {
  readonly code = UNAVAILABLE;
  constructor(cause: unknown) {
    super("the authorization server did not respond", { cause });
    this.name = "IntrospectionUnavailable";
  }
}

const TIMEOUT_MS = 5000;

type Options = {
  url: string;
  clientId: string;
  clientSecret: string;
  trace?: TraceOutgoing | undefined;
};

/** Creates an introspection client (RFC 7662) of an authorization server, which knows it as `resource-server`. */
export function createRemoteIntrospect({
  url,
  clientId,
  clientSecret,
  trace = untraced,
}: Options): Introspect {
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;

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

/** Returns undefined if the response lacks a required field. */
function toActiveToken(response: IntrospectionResponse): ActiveToken | undefined {
  const {
    client_id: clientId,
    organization_id: organizationId,
    plan,
    suspended,
    aud,
    exp,
    scope = "",
    sub,
    cnf,
  } = response;
  if (!clientId || !organizationId || !isPlan(plan) || typeof aud !== "string" || typeof exp !== "number")
    return undefined;
  const scopes = new Set(scope.split(" ").filter(Boolean));
  return {
    clientId,
    organizationId,
    plan,
    scopes,
    audience: aud,
    expiresAt: exp,
    // The subject of a client-credentials token is the client.
    ...(sub && sub !== clientId && { userId: sub }),
    ...(cnf?.jkt && { jkt: cnf.jkt }),
    ...(suspended && { suspended: true }),
  };
}
