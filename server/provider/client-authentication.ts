import { timingSafeEqual } from "node:crypto";
import { type Client, type KoaContextWithOIDC, Provider } from "oidc-provider";
import { sha256 } from "../../adapters/crypto/hash.ts";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { RESOURCE_SERVER, secretsOf } from "../clients/client-metadata.ts";
import { createSecretUseRecorder } from "../clients/secret-use-recorder.ts";
import { requireUsable } from "./require-api-access.ts";

const ISSUING_ROUTES = new Set<string | undefined>(["token", "pushed_authorization_request"]);

/**
 * Replaces the library's comparison of a client secret, the last step of client authentication. Secrets are stored as
 * hashes, and a client may have two active ones.
 */
export function overrideClientAuthentication(provider: Provider, clients: ClientStore): void {
  const recordUse = createSecretUseRecorder(clients, (error) => provider.emit("error", error));

  Object.assign(provider.Client.prototype, {
    async compareClientSecret(this: Client, secret: string): Promise<boolean> {
      const { ctx } = Provider;
      const secretId = findActiveSecret(this, secret);
      if (!secretId) return false;
      if (secretId !== RESOURCE_SERVER && ctx) recordUse(secretId, ctx);
      requireUsableToIssue(ctx, this);
      return true;
    },
  });
}

/** Returns the id of the client's active secret with this value, compared in constant time. */
function findActiveSecret(client: Client, value: string): string | undefined {
  const given = Buffer.from(sha256(value));
  const now = Date.now();
  // Compares all of them: the time must not depend on which one matches.
  const matching = secretsOf(client).filter(
    ({ hash, expiresAt }) =>
      timingSafeEqual(Buffer.from(hash), given) && (expiresAt === null || expiresAt > now),
  );
  return matching[0]?.id;
}

/**
 * Requires a usable client where tokens are issued; a client that is disabled, suspended or on the Free plan may still
 * revoke. The library has no hook between client authentication and the checks of the request, and this must come after
 * the secret: only the client itself learns of its state.
 */
export function requireUsableToIssue(ctx: KoaContextWithOIDC | undefined, client: Client): void {
  if (ISSUING_ROUTES.has(ctx?.oidc.route)) requireUsable(client);
}
