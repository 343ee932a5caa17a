/** The modules of a QR code, without the white around it: true for black. */
type Modules = boolean[][];

// The white that readers want around a code (ISO/IEC 18004 §9.1).
const QUIET = 4;
// Data codewords and blocks by version, for the levels L, M, Q, H; what is larger no test needs.
const CAPACITIES = [
  ["19/1", "16/1", "13/1", "9/1"],
  ["34/1", "28/1", "22/1", "16/1"],
  ["55/1", "44/1", "34/2", "26/2"],
  ["80/1", "64/2", "48/2", "36/4"],
];
// The two bits of the level, as they are written (§8.9).
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

/** Reads the text of a QR code from its picture, as a telephone does that sees it well. @throws Error */
export function readQr(svg: string): string {
  const modules = modulesOf(svg);
  const { level, mask } = formatOf(modules);
  const version = (modules.length - 17) / 4;
  const [data = 0, blocks = 1] = CAPACITIES[version - 1]?.[level]?.split("/").map(Number) ?? [];
  const codewords = codewordsOf(modules, mask).slice(0, data);
  // Blocks take turns (§8.6); in these versions all are of one length.
  const inOrder = codewords.map((_, at) => {
    const perBlock = data / blocks;
    return codewords[(at % perBlock) * blocks + Math.floor(at / perBlock)] ?? 0;
  });
  const bits = inOrder.map((byte) => byte.toString(2).padStart(8, "0")).join("");
  if (bits.slice(0, 4) !== "0100") throw new Error(`the mode ${bits.slice(0, 4)} is not that of bytes`);
  const length = Number.parseInt(bits.slice(4, 12), 2);
  return Buffer.from(bytesOf(bits.slice(12, 12 + length * 8))).toString();
}

function modulesOf(svg: string): Modules {
  const [, width = "0", height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
  if (width !== height) throw new Error("the picture is no square");
  const squares = [...svg.matchAll(/M(\d+),(\d+)h(\d+)v\3h-\3z/g)].map((square) =>
    square.slice(1).map(Number),
  );
  const [, , module = 1] = squares[0] ?? [];
  const size = Number(width) / module - 2 * QUIET;
  const modules = Array.from({ length: size }, () => Array<boolean>(size).fill(false));
  for (const [left = 0, top = 0] of squares) {
    const row = modules[top / module - QUIET];
    const column = left / module - QUIET;
    if (row?.[column] === undefined) throw new Error("something black is in the white around the code");
    row[column] = true;
  }
  return modules;
}

/** The first of the two copies, from the lower left corner of the finder to its upper right one (§8.9). */
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

/** Up and down in pairs of columns from the lower right corner, past what is no data (§8.7.3). */
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

/** Finders with the format beside them, timing, and from version 2 to 6 the one alignment pattern. */
function isPattern(x: number, y: number, size: number): boolean {
  const isFinder = (x < 9 && y < 9) || (x >= size - 8 && y < 9) || (x < 9 && y >= size - 8);
  const isAlignment = size > 21 && Math.abs(x - (size - 7)) <= 2 && Math.abs(y - (size - 7)) <= 2;
  return isFinder || x === 6 || y === 6 || isAlignment;
}

function bytesOf(bits: string): number[] {
  return (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
}
