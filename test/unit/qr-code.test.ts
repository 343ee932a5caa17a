import { crc32, inflateSync } from "node:zlib";
import test from "ava";
import { encode } from "uqr";
import { QR_FORMATS, qrQuery } from "../../server/dashboard/links/qr-code.ts";

// The width of the quiet zone (ISO/IEC 18004 §9.1).
const QUIET = 4;

/** Reads a PNG with one bit per pixel and no filters, and verifies its checksums (RFC 2083). */
function pixelsOf(png: Buffer): { size: number; palette: string; pixels: boolean[][] } {
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    const end = at + 8 + png.readUInt32BE(at);
    if (crc32(png.subarray(at + 4, end)) !== png.readUInt32BE(end)) throw new Error("a checksum is wrong");
    chunks.set(png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, end));
  }
  const chunk = (name: string) => chunks.get(name) ?? Buffer.alloc(13);
  const [size, height] = [chunk("IHDR").readUInt32BE(0), chunk("IHDR").readUInt32BE(4)];
  if (size !== height) throw new Error("the image is not square");
  const lines = inflateSync(chunk("IDAT"));
  const lineLength = 1 + Math.ceil(size / 8);
  const isDark = (x: number, y: number) =>
    (((lines[y * lineLength + 1 + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1) === 1;
  const pixels = Array.from({ length: size }, (_, y) => Array.from({ length: size }, (_, x) => isDark(x, y)));
  return { size, palette: chunk("PLTE").toString("hex"), pixels };
}

const TEXT = "https://go.example/a-slug-of-some-length";
const { data: MODULES } = encode(TEXT, { border: QUIET, ecc: "M" });

for (const [query, size, color] of [
  [{}, 512, "000000"],
  [{ size: 128 }, 128, "000000"],
  [{ size: 999, color: "#1F5FBF", download: "1" }, 999, "1f5fbf"],
] as const)
  test(`a PNG with ${JSON.stringify(query)} has exactly its size, its color and the modules of the code`, async (t) => {
    const png = pixelsOf(await QR_FORMATS.png.render(TEXT, qrQuery.parse(query)));
    t.is(png.size, size);
    t.is(png.palette, `ffffff${color}`);
    const scale = Math.floor(size / MODULES.length);
    const margin = Math.floor((size - scale * MODULES.length) / 2);
    const at = (pixel: number) => Math.floor((pixel - margin) / scale);
    const isWrong = (isDark: boolean, x: number, y: number) => isDark !== (MODULES[at(y)]?.[at(x)] ?? false);
    t.false(png.pixels.some((row, y) => row.some((isDark, x) => isWrong(isDark, x, y))));
  });

test("an SVG has the modules of the code, its color, and a size if one is asked for", async (t) => {
  const svg = await QR_FORMATS.svg.render(TEXT, qrQuery.parse({ size: 1000, color: "1F5FBF" }));
  t.regex(svg, /<svg width="1000" height="1000" /);
  t.true(svg.includes('<path fill="#1f5fbf"'));
  t.notRegex(await QR_FORMATS.svg.render(TEXT, qrQuery.parse({})), /<svg width/);
  const squares = [...svg.matchAll(/M(\d+),(\d+)h(\d+)/g)].map((square) => square.slice(1).map(Number));
  const dark = squares.map(([x = 0, y = 0, width = 1]) => `${x / width},${y / width}`);
  const expected = MODULES.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `${x},${y}` : [])));
  t.deepEqual(dark.sort(), expected.sort());
});

test("a QR code of another size, or with another or a light color, is rejected", (t) => {
  const fieldsOf = (query: object) =>
    qrQuery.safeParse(query).error?.issues.map(({ path }) => path.join("."));
  for (const size of [127, 2049, "large", 128.5]) t.deepEqual(fieldsOf({ size }), ["size"], `${size}`);
  for (const color of ["red", "ffffff", "9e9e9e", `"/><script>`])
    t.deepEqual(fieldsOf({ color }), ["color"], color);
});
