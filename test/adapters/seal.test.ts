import { randomBytes } from "node:crypto";
import test from "ava";
import { createSeal } from "../../adapters/seal.ts";

const key = randomBytes(32);
const seal = createSeal(key);

test("what was sealed opens again, whatever it is", (t) => {
  for (const text of ["", "a", "ü – 漢字 – \u{1f512} – \0", "x".repeat(100_000)]) {
    t.is(seal.open(seal.close(text, "a purpose"), "a purpose"), text);
    t.is(createSeal(key).open(seal.close(text, ""), ""), text);
  }
});

test("the same text is never sealed alike", (t) => {
  t.is(new Set(Array.from({ length: 1000 }, () => seal.close("text", "a purpose"))).size, 1000);
});

test("it opens with no other key and for no other purpose", (t) => {
  const sealed = seal.close("text", "a purpose");
  t.throws(() => createSeal(randomBytes(32)).open(sealed, "a purpose"));
  for (const context of ["", "A purpose", "a purpose ", "another"])
    t.throws(() => seal.open(sealed, context));
});

test("it does not open when any bit of it was changed", (t) => {
  const bytes = Buffer.from(seal.close("text", "a purpose").slice(3), "base64url");
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    t.throws(() => seal.open(`v1.${changed.toString("base64url")}`, "a purpose"), undefined, `bit ${bit}`);
  }
});

test("it does not open when it was cut, or made longer", (t) => {
  const bytes = Buffer.from(seal.close("text", "a purpose").slice(3), "base64url");
  for (let length = 0; length < bytes.length; length++) {
    const cut = bytes.subarray(0, length).toString("base64url");
    t.throws(() => seal.open(`v1.${cut}`, "a purpose"), undefined, `${length} bytes`);
  }
  for (const more of [Buffer.concat([bytes, Buffer.alloc(1)]), Buffer.concat([Buffer.alloc(1), bytes])])
    t.throws(() => seal.open(`v1.${more.toString("base64url")}`, "a purpose"));
});

test("a shorter tag, which the cipher would take, does not open", (t) => {
  // With an empty text the bytes end with the tag: cut, it is one of 12 or 4 bytes, and easier to guess.
  const bytes = Buffer.from(seal.close("", "a purpose").slice(3), "base64url");
  for (const length of [4, 8, 12, 13, 14, 15]) {
    const cut = bytes.subarray(0, 12 + length).toString("base64url");
    t.throws(() => seal.open(`v1.${cut}`, "a purpose"), undefined, `${length} bytes`);
  }
});

test("what was not sealed by this version does not open", (t) => {
  const sealed = seal.close("text", "a purpose");
  for (const text of ["", "v1.", "v1", sealed.slice(3), `v2.${sealed.slice(3)}`, ` ${sealed}`, "null"])
    t.throws(() => seal.open(text, "a purpose"));
});

test("a key of another length is refused when it is given", (t) => {
  for (const length of [0, 16, 31, 33, 64])
    t.throws(() => createSeal(randomBytes(length)), { instanceOf: TypeError });
});
