import { hash } from "node:crypto";

/**
 * SHA-256 in base64url (43 characters). All that is hashed this way has 256 random bits, so that neither a salt
 * nor a slow hash adds anything (OWASP ASVS 5.0 V6.5.2).
 */
export function sha256(value: string): string {
  return hash("sha256", value, "base64url");
}
