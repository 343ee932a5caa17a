import { decodeJwt, type JWTPayload } from "jose";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { isAboutUser, JWT_BEARER_GRANT } from "./jwt-bearer.ts";

const JWT_BEARER_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** An assertion that authenticates the client of a request. */
export type Assertion = {
  clientId: string;
  assertion: string;
  /** Its unverified `iss`. */
  issuer: unknown;
  /** Whether it was sent as an authorization grant (RFC 7523 §2.1), not as `client_assertion` (§2.2). */
  isGrant: boolean;
};

type Params = Record<string, unknown>;

/**
 * Takes the assertion out of the parameters of a request if it is the only client authentication. The library rejects
 * malformed ones, and those beside other authentication.
 */
export function takeAssertion(ctx: KoaContextWithOIDC, params: Params): Assertion | undefined {
  if (params.client_secret !== undefined || ctx.get("authorization")) return undefined;
  if (params.client_assertion !== undefined) return takeClientAssertion(params);
  return params.grant_type === JWT_BEARER_GRANT ? takeGrant(params) : undefined;
}

function takeClientAssertion(params: Params): Assertion | undefined {
  const { client_assertion: assertion, client_assertion_type: type } = params;
  if (typeof assertion !== "string" || type !== JWT_BEARER_CLIENT) return undefined;
  const claims = decode(assertion);
  // The subject is the client, but for tokens of workloads, which name their own (RFC 7523 §3).
  const clientId = params.client_id ?? claims?.sub;
  if (!claims || typeof clientId !== "string") return undefined;
  params.client_id = clientId;
  delete params.client_assertion;
  delete params.client_assertion_type;
  return { clientId, assertion, issuer: claims.iss, isGrant: false };
}

/**
 * The token of a workload also identifies the client, so it gets what `client_credentials` would get. An assertion about
 * a user is left to the grant, because the client has to authenticate besides.
 */
function takeGrant(params: Params): Assertion | undefined {
  const { assertion, client_id: clientId } = params;
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  if (typeof assertion !== "string") throw new errors.InvalidRequest("assertion must not be provided twice");
  if (typeof clientId !== "string" || isAboutUser(assertion)) return undefined;
  params.grant_type = "client_credentials";
  delete params.assertion;
  return { clientId, assertion, issuer: decode(assertion)?.iss, isGrant: true };
}

function decode(jwt: string): JWTPayload | undefined {
  try {
    return decodeJwt(jwt);
  } catch {
    return undefined;
  }
}
