import { createHmac, timingSafeEqual } from "node:crypto";

/** CSRF tokens, each bound to one purpose, such as a session. */
export type Csrf = {
  token(purpose: string): string;
  isValid(token: unknown, purpose: string): boolean;
};

/** Creates the tokens. @param secret shared by all processes */
export function createCsrf(secret: string): Csrf {
  const sign = (purpose: string) => createHmac("sha256", secret).update(`csrf\n${purpose}`).digest();
  return {
    token: (purpose) => sign(purpose).toString("base64url"),
    isValid(token, purpose) {
      const given = Buffer.from(typeof token === "string" ? token : "", "base64url");
      const expected = sign(purpose);
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}
