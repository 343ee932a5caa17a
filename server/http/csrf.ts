import { createHmac, timingSafeEqual } from "node:crypto";

/** Form tokens: proof that a form came from a page of ours, for one purpose. */
export type Csrf = {
  token(purpose: string): string;
  isValid(token: unknown, purpose: string): boolean;
};

/** @param secret shared by every process */
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
