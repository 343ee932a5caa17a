import { timingSafeEqual } from "node:crypto";
import { type Client, Provider } from "oidc-provider";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import type { ClientStore } from "../../../adapters/oauth/clients.ts";
import { isFapi, RESOURCE_SERVER, secretsOf } from "../../clients/client-metadata.ts";
import { createSecretUseRecorder } from "../../clients/use-recorder.ts";
import { refuseSecret } from "../fapi.ts";
import { requireUsableToIssue } from "../require-api-access.ts";

/**
 * Seam: client secrets are compared with hashes, of which a client may have two; then the client must be usable.
 * No option: oidc-provider stores one secret of a client as text. Its maintainer recommends to override this method.
 * Upstream would have to offer: an option that compares secrets.
 */
export function compareHashedSecrets(provider: Provider, clients: ClientStore): void {
  const recordUse = createSecretUseRecorder(clients, (error) => provider.emit("error", error));

  Object.assign(provider.Client.prototype, {
    async compareClientSecret(this: Client, secret: string): Promise<boolean> {
      const { ctx } = Provider;
      if (isFapi(this)) refuseSecret();
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
