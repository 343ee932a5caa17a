import { hash } from "node:crypto";

/** SHA-256 in base64url. Every hashed secret has 256 random bits, so it needs no salt (OWASP ASVS 5.0 V6.5.2). */
export function sha256(value: string | Uint8Array): string {
  return hash("sha256", value, "base64url");
}
