import { Secret, TOTP } from "otpauth";

const ISSUER = "linkgate";
const SECRET_BYTES = 20; // RFC 4226 §4: 160 bits are recommended
const PERIOD_S = 30;
// RFC 6238 §5.2: one step of delay is recommended. One in each direction also covers a clock that is ahead.
const WINDOW = 1;

/** Returns base32. */
export function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

export function totpUri(secret: string, username: string): string {
  return generatorOf(secret, username).toString();
}

/** Returns undefined if the code is wrong; ignores spaces. */
export function stepOfCode(secret: string, code: string): number | undefined {
  const token = code.replace(/\s/g, "");
  if (!/^\d{6}$/.test(token)) return undefined;
  const timestamp = Date.now();
  const delta = generatorOf(secret).validate({ token, timestamp, window: WINDOW });
  return delta === null ? undefined : Math.floor(timestamp / 1000 / PERIOD_S) + delta;
}

function generatorOf(secret: string, label = ""): TOTP {
  return new TOTP({ issuer: ISSUER, label, secret: Secret.fromBase32(secret), period: PERIOD_S });
}
