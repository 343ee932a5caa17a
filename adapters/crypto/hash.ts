import { hash } from "node:crypto";

/**
 * Returns the SHA-256 hash in base64url (43 characters). Every hashed secret has 256 random bits, so neither a salt nor a
 * slow hash would add security (OWASP ASVS 5.0 V6.5.2).
 */
export function sha256(value: string): string {
  return hash("sha256", value, "base64url");
}
