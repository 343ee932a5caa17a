import { crc32, inflateSync } from "node:zlib";

/** The modules of a QR code without the quiet zone: true for black. */
type Modules = boolean[][];

// The width of the quiet zone (ISO/IEC 18004 §9.1).
const QUIET = 4;
// Data codewords and blocks by version, for the levels L, M, Q and H. Tests need no larger versions.
const CAPACITIES = [
  ["19/1", "16/1", "13/1", "9/1"],
  ["34/1", "28/1", "22/1", "16/1"],
  ["55/1", "44/1", "34/2", "26/2"],
  ["80/1", "64/2", "48/2", "36/4"],
];
// The level that each value of the two format bits stands for (§8.9).
const LEVELS = [1, 0, 3, 2];
const FORMAT_MASK = 0b101010000010010;
const MASKS: ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** Decodes the text of a QR code from its SVG. @throws Error */
export function readQr(svg: string): string {
  return textOf(modulesOf(svg));
}

/** Decodes the text of a QR code from a PNG of two colors, the second of which is dark. @throws Error */
export function readQrPng(png: Buffer): { text: string; size: number; color: string } {
  const { size, palette, pixels } = pixelsOf(png);
  const edge = pixels.findIndex((row) => row.includes(true));
  const module = ((pixels[edge]?.indexOf(false, edge) ?? 0) - edge) / 7; // a finder is seven modules wide
  const end = (pixels[edge]?.lastIndexOf(true) ?? 0) + 1;
  if (edge < QUIET * module || size - end < QUIET * module) throw new Error("the quiet zone is too small");
  const count = (end - edge) / module;
  const modules = Array.from({ length: count }, (_, y) =>
    Array.from({ length: count }, (_, x) => pixels[edge + y * module]?.[edge + x * module] ?? false),
  );
  return { text: textOf(modules), size, color: palette.slice(6) };
}

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

function textOf(modules: Modules): string {
  const { level, mask } = formatOf(modules);
  const version = (modules.length - 17) / 4;
  const [data = 0, blocks = 1] = CAPACITIES[version - 1]?.[level]?.split("/").map(Number) ?? [];
  const codewords = codewordsOf(modules, mask).slice(0, data);
  // Blocks are interleaved (§8.6); in these versions they all have the same length.
  const inOrder = codewords.map((_, at) => {
    const perBlock = data / blocks;
    return codewords[(at % perBlock) * blocks + Math.floor(at / perBlock)] ?? 0;
  });
  const bits = inOrder.map((byte) => byte.toString(2).padStart(8, "0")).join("");
  if (bits.slice(0, 4) !== "0100") throw new Error(`the mode ${bits.slice(0, 4)} is not the byte mode`);
  const length = Number.parseInt(bits.slice(4, 12), 2);
  return Buffer.from(bytesOf(bits.slice(12, 12 + length * 8))).toString();
}

function modulesOf(svg: string): Modules {
  const [, width = "0", height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
  if (width !== height) throw new Error("the image is not square");
  const squares = [...svg.matchAll(/M(\d+),(\d+)h(\d+)v\3h-\3z/g)].map((square) =>
    square.slice(1).map(Number),
  );
  const [, , module = 1] = squares[0] ?? [];
  const size = Number(width) / module - 2 * QUIET;
  const modules = Array.from({ length: size }, () => Array<boolean>(size).fill(false));
  for (const [left = 0, top = 0] of squares) {
    const row = modules[top / module - QUIET];
    const column = left / module - QUIET;
    if (row?.[column] === undefined) throw new Error("a black module is in the quiet zone");
    row[column] = true;
  }
  return modules;
}

/** Reads the first of the two copies of the format, from the finder's lower left to its upper right corner (§8.9). */
function formatOf(modules: Modules): { level: number; mask: number } {
  const along = [0, 1, 2, 3, 4, 5, 7, 8];
  const bits = [
    ...along.map((x) => modules[8]?.[x]),
    ...along
      .toReversed()
      .slice(1)
      .map((y) => modules[y]?.[8]),
  ];
  const format = Number.parseInt(bits.map(Number).join(""), 2) ^ FORMAT_MASK;
  return { level: LEVELS.indexOf(format >> 13), mask: (format >> 10) & 7 };
}

/** Reads the codewords in pairs of columns, up and down from the lower right corner, skipping patterns (§8.7.3). */
function codewordsOf(modules: Modules, mask: number): number[] {
  const size = modules.length;
  const isMasked = MASKS[mask] as (typeof MASKS)[number];
  const columns = Array.from({ length: size }, (_, x) => x)
    .filter((x) => x !== 6)
    .reverse();
  let bits = "";
  for (let pair = 0; pair < columns.length; pair += 2) {
    for (let step = 0; step < size; step++) {
      const y = pair % 4 === 0 ? size - 1 - step : step;
      for (const x of columns.slice(pair, pair + 2)) {
        if (!isPattern(x, y, size)) bits += Number(modules[y]?.[x]) ^ Number(isMasked(x, y) === 0);
      }
    }
  }
  return bytesOf(bits);
}

/** Returns whether a module belongs to a finder, the format, the timing, or the alignment pattern of versions 2 to 6. */
function isPattern(x: number, y: number, size: number): boolean {
  const isFinder = (x < 9 && y < 9) || (x >= size - 8 && y < 9) || (x < 9 && y >= size - 8);
  const isAlignment = size > 21 && Math.abs(x - (size - 7)) <= 2 && Math.abs(y - (size - 7)) <= 2;
  return isFinder || x === 6 || y === 6 || isAlignment;
}

function bytesOf(bits: string): number[] {
  return (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
}
