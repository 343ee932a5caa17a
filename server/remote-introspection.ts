import type { Plan } from "../resources/plans.ts";
import { isPlan } from "../resources/plans.ts";
import type { ActiveToken, Introspect } from "../resources/ports.ts";

/** The authorization server could not be asked. */
export class IntrospectionUnavailable extends Error {
  constructor(cause: unknown) {
    super("the authorization server does not answer", { cause });
    this.name = "IntrospectionUnavailable";
  }
}

const TIMEOUT_MS = 5000;

type Options = { url: string; clientId: string; clientSecret: string };

/** Asks an authorization server about tokens over HTTP, as its client `resource-server`: RFC 7662. */
export function introspectOver({ url, clientId, clientSecret }: Options): Introspect {
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;

  return async (token) => {
    let body: Answer;
    try {
      const answer = await fetch(url, {
        method: "POST",
        headers: { authorization, accept: "application/json" },
        body: new URLSearchParams({ token, token_type_hint: "access_token" }),
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (!answer.ok) throw new Error(`introspection answered ${answer.status}`);
      body = (await answer.json()) as Answer;
    } catch (error) {
      throw new IntrospectionUnavailable(error);
    }
    return body.active ? toActiveToken(body) : undefined;
  };
}

type Answer = {
  active: boolean;
  client_id?: string;
  sub?: string;
  organization_id?: string;
  plan?: Plan;
  scope?: string;
  aud?: string;
  exp?: number;
};

/** Anything less than a whole answer is no token. */
function toActiveToken(answer: Answer): ActiveToken | undefined {
  const { client_id: clientId, organization_id: organizationId, plan, aud, exp, scope = "", sub } = answer;
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
    ...(sub && { userId: sub }),
  };
}
