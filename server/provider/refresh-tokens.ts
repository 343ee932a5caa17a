import type { Configuration } from "oidc-provider";
import { ABSOLUTE_LIFETIME, ACCESS_TOKEN_LIFETIME } from "../lifetimes.ts";

const DAY = 24 * 60 * 60;

/** A refresh token expires after this time without use. Seconds. */
const IDLE_LIFETIME = 30 * DAY;
/** The share of its lifetime after which a confidential client's refresh token is rotated. Percent. */
const ROTATE_AFTER_PERCENT = 70;

/**
 * Returns for how many more seconds a refresh token is valid: never past the absolute lifetime of its family, nor past the
 * consent that its grant follows from.
 */
export const refreshTokenLifetime: NonNullable<Configuration["ttl"]>["RefreshToken"] = (ctx, token) => {
  const now = Math.floor(Date.now() / 1000);
  const issued = token.iiat ?? token.iat ?? now;
  const grantEnd = (ctx?.oidc?.entities.Grant?.exp ?? Number.POSITIVE_INFINITY) - ACCESS_TOKEN_LIFETIME;
  return Math.max(1, Math.min(IDLE_LIFETIME, issued + ABSOLUTE_LIFETIME - now, grantEnd - now));
};

/** Issues refresh tokens to every client that may use them, whether or not `offline_access` was requested. */
export const issueRefreshToken: Configuration["issueRefreshToken"] = async (_ctx, client) =>
  client.grantTypeAllowed("refresh_token");

/** Rotates refresh tokens of public clients on each use, others late in their lifetime (RFC 9700 §2.2.2). */
export const rotateRefreshToken: Configuration["rotateRefreshToken"] = ({ oidc }) => {
  const token = oidc.entities.RefreshToken;
  const isPublic = oidc.client?.tokenEndpointAuthMethod === "none";
  return isPublic || (token !== undefined && token.ttlPercentagePassed() >= ROTATE_AFTER_PERCENT);
};
