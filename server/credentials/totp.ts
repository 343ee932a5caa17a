import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const ISSUER = "linkgate";
const SECRET_BYTES = 20; // RFC 4226 §4: 160 bits are recommended
const PERIOD_S = 30;
const DIGITS = 6;
// RFC 6238 §5.2: one step of delay is recommended. One in each direction also covers a clock that is ahead.
const WINDOW = [0, -1, 1];
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"; // RFC 4648 §6

/** Returns base32: each of its characters stands for five bits. */
export function newTotpSecret(): string {
  return Array.from(randomBytes((SECRET_BYTES * 8) / 5), (byte) => BASE32[byte % 32]).join("");
}

/** Returns the content of the QR code that authenticator apps read. */
export function totpUri(secret: string, username: string): string {
  const parameters = `issuer=${ISSUER}&secret=${secret}&algorithm=SHA1&digits=${DIGITS}&period=${PERIOD_S}`;
  return `otpauth://totp/${ISSUER}:${encodeURIComponent(username)}?${parameters}`;
}

/** Returns undefined if the code is wrong; ignores spaces. */
export function stepOfCode(secret: string, code: string): number | undefined {
  const token = code.replace(/\s/g, "");
  if (!/^\d{6}$/.test(token)) return undefined;
  const key = fromBase32(secret);
  const current = Math.floor(Date.now() / 1000 / PERIOD_S);
  const steps = WINDOW.map((delta) => current + delta);
  return steps.find((step) => timingSafeEqual(Buffer.from(codeAt(key, step)), Buffer.from(token)));
}

/** RFC 6238 §4.2, and RFC 4226 §5.3 for the truncation. */
function codeAt(key: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigInt64BE(BigInt(step));
  const digest = createHmac("sha1", key).update(counter).digest();
  const offset = (digest.at(-1) as number) & 0xf;
  const number = digest.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, "0");
}

function fromBase32(secret: string): Buffer {
  const bits = Array.from(secret, (character) => BASE32.indexOf(character).toString(2).padStart(5, "0"));
  const bytes = bits.join("").match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}
