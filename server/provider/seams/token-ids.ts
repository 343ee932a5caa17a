import type { Client, Provider } from "oidc-provider";
import { withChecksum } from "../../../adapters/crypto/ids.ts";
import { tokenTime } from "../../../adapters/oauth/token-row.ts";

/**
 * Seam: a token gets an id of ours, and what it keeps of its client, when it is about to be stored.
 * No option: the length of an id is configurable, its form is not.
 * Upstream would have to offer: an option that generates ids.
 */

const PREFIXES = { AccessToken: "lga_", ClientCredentials: "lga_", RefreshToken: "lgr_" };

type NewToken = { client?: Client; generation?: unknown; isPublic?: boolean };
type Model = { prototype: { generateTokenId(this: NewToken): string } };

/**
 * Prefixes and checksums let scanners find leaked tokens, and help people to tell one kind from another. With the time,
 * tokens are stored in the order in which they were issued.
 */
export function generateTokenIds(provider: Provider): void {
  for (const [name, prefix] of Object.entries(PREFIXES)) {
    const { prototype } = provider[name as keyof typeof PREFIXES] as unknown as Model;
    const { generateTokenId } = prototype;
    prototype.generateTokenId = function generatePrefixed() {
      this.generation = this.client?.generation;
      this.isPublic = this.client?.tokenEndpointAuthMethod === "none";
      return withChecksum(prefix + tokenTime() + generateTokenId.call(this));
    };
  }
}
