import { mock } from "node:test";
import test from "ava";
import { newTotpSecret, stepOfCode, totpUri } from "../../server/credentials/totp.ts";
import { codeOf } from "../harness/clients/second-factor.ts";

test.before(() => mock.timers.enable({ apis: ["Date"] }));
test.after.always(() => mock.timers.reset());

// RFC 6238, Appendix B: the secret "12345678901234567890", and the last six of eight digits.
const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const CODES: [seconds: number, code: string][] = [
  [59, "287082"],
  [1111111109, "081804"],
  [2000000000, "279037"],
  [20000000000, "353130"],
];

const stepAt = (seconds: number, code: string) => {
  mock.timers.setTime(seconds * 1000);
  return stepOfCode(SECRET, code);
};

test.serial("codes are those of RFC 6238, and valid one step earlier and later", (t) => {
  for (const [seconds, code] of CODES) {
    const step = Math.floor(seconds / 30);
    for (const delta of [-30, 0, 30]) t.is(stepAt(seconds + delta, code), step, `${seconds} ${delta}`);
    t.is(stepAt(seconds + 60, code), undefined);
  }
  t.is(stepAt(1111111109 - 60, "081804"), undefined);
});

test.serial("a code may be written with spaces, and has six digits", (t) => {
  t.is(stepAt(59, " 287 082"), 1);
  for (const code of ["", "28708", "2870820", "94287082", "28708x", "２８７０８２"])
    t.is(stepAt(59, code), undefined, code);
});

test.serial("a new secret has 160 bits, and apps show codes that are accepted", (t) => {
  const secrets = new Set(Array.from({ length: 100 }, newTotpSecret));
  t.is(secrets.size, 100);
  for (const secret of secrets) {
    t.regex(secret, /^[A-Z2-7]{32}$/);
    t.not(stepOfCode(secret, codeOf(secret)), undefined, secret);
  }
});

test.serial("the QR code has the format that apps read", (t) => {
  const uri = new URL(totpUri(SECRET, "ada.l"));
  t.is(uri.href.split("?")[0], "otpauth://totp/linkgate:ada.l");
  const format = { issuer: "linkgate", secret: SECRET, algorithm: "SHA1", digits: "6", period: "30" };
  t.deepEqual(Object.fromEntries(uri.searchParams), format);
});
