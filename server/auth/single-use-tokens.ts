import { hkdfSync, randomBytes } from "node:crypto";
import { createEncryption } from "../../adapters/crypto/encryption.ts";
import type { SingleUse } from "../../adapters/oauth/replay.ts";
import { tryTo } from "../../resources/try-to.ts";

const ID_BYTES = 16;
const KEY_BYTES = 32;

/**
 * Creates tokens that contain their data, encrypted, so the server stores only which of them were used. All processes
 * share `secret`. Tokens of one `issuer` can't be read as those of another.
 */
export function createSingleUseTokens<Data extends object>(
  secret: string,
  issuer: string,
  lifetimeMs: number,
) {
  const encryption = createEncryption(new Uint8Array(hkdfSync("sha256", secret, "", issuer, KEY_BYTES)));
  return {
    /** Only this `holder` can read the token. */
    create(data: Data, holder: string): string {
      const jti = randomBytes(ID_BYTES).toString("base64url");
      const use: SingleUse = { issuer, jti, expiresAt: Date.now() + lifetimeMs };
      return encryption.encrypt(JSON.stringify({ ...data, ...use }), holder);
    },

    /** Returns undefined if the token was modified, has expired, or belongs to another holder. */
    read(token: string, holder: string): (Data & SingleUse) | undefined {
      const found = tryTo((): Data & SingleUse => JSON.parse(encryption.decrypt(token, holder)));
      return found && found.expiresAt > Date.now() ? found : undefined;
    },
  };
}
