import { errors } from "oidc-provider";

// An authorization request is stored while its user signs in. RFC 6749 sets no limits; what clients send stays far
// below these.
const MAX_STATE_BYTES = 2048;
const MAX_REQUEST_BYTES = 4096;

const ROUTES = new Set(["authorization", "pushed_authorization_request"]);

/**
 * Refuses an authorization request that is too large to keep.
 * @throws InvalidRequest naming the parameter and the limit
 */
export function checkParameterSizes(route: string | undefined, params: Record<string, unknown>): void {
  if (!ROUTES.has(route ?? "")) return;
  if (bytesOf(params.state) > MAX_STATE_BYTES) {
    throw new errors.InvalidRequest(`state must be at most ${MAX_STATE_BYTES} bytes long`);
  }
  const total = Object.values(params).reduce<number>((sum, value) => sum + bytesOf(value), 0);
  if (total > MAX_REQUEST_BYTES) {
    throw new errors.InvalidRequest(
      `the parameters must be at most ${MAX_REQUEST_BYTES} bytes long, all together`,
    );
  }
}

/** The length of a parameter, or of all its values. */
function bytesOf(value: unknown): number {
  return [value].flat().reduce<number>((sum, one) => sum + Buffer.byteLength(String(one ?? "")), 0);
}
