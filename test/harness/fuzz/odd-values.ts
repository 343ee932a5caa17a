/** Texts whose length, order or end is easily misjudged, and texts that mean something in another language. */
export const ODD_TEXTS: readonly string[] = [
  ...["", " ", "\n", "\0", "a\0b", "\u007f", "\u0085", "\u2028", "\ud800", "a\udc00", "\ufeffa"],
  ...["\uffff", "ü", "İıſß", "مرحبا", "\u202egnp.exe", `e${"\u0301".repeat(60)}`, "👩‍👩‍👧‍👦"],
  ...["😀".repeat(255), "x".repeat(256), "x".repeat(3000), "a b", "100%_\\", "%", "%00", "%ED%A0%80"],
  ...["..", "a/b?c#d", "__proto__", "constructor", "null", "' or 1=1 --", "{{a}}<i>"],
];

export const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  303,
  2 ** 31,
  2 ** 53,
  ...ODD_TEXTS,
  [],
  ["x", 5],
  [""],
  Array.from({ length: 101 }, (_, n) => `${n}`),
  {},
  { a: { b: 1 } },
  { "": 1 },
  Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, n])),
];
