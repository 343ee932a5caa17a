/** Pixels in rows, each as red, green, blue and alpha. */
export type Pixels = { width: number; height: number; data: Buffer };

const CHANNELS = 4;

/** Fits an image into a square of at most `most` pixels a side, in the middle of a transparent background. */
export function shrinkToSquare(image: Pixels, most: number): Pixels {
  const longer = Math.max(image.width, image.height);
  const side = Math.min(most, longer);
  const columns = partition(image.width, side / longer);
  const rows = partition(image.height, side / longer);
  const left = Math.floor((side - columns.length) / 2);
  const top = Math.floor((side - rows.length) / 2);
  const data = Buffer.alloc(side * side * CHANNELS);
  for (const [y, row] of rows.entries()) {
    for (const [x, column] of columns.entries())
      data.set(averageOf(image, row, column), ((top + y) * side + left + x) * CHANNELS);
  }
  return { width: side, height: side, data };
}

/** The part of an axis of the image that one pixel of the result covers. */
type Span = { from: number; to: number };

function partition(length: number, scale: number): Span[] {
  const parts = Math.max(1, Math.round(length * scale));
  const edge = (index: number) => (index * length) / parts;
  return Array.from({ length: parts }, (_, index) => ({ from: edge(index), to: edge(index + 1) }));
}

/** Weighs colors by their alpha, because what is transparent has no color. */
function averageOf({ width, data }: Pixels, row: Span, column: Span): number[] {
  let [red, green, blue, alpha] = [0, 0, 0, 0];
  for (let y = Math.floor(row.from); y < row.to; y++) {
    const high = overlap(row, y);
    for (let x = Math.floor(column.from); x < column.to; x++) {
      const at = (y * width + x) * CHANNELS;
      const weight = high * overlap(column, x) * (data[at + 3] as number);
      red += weight * (data[at] as number);
      green += weight * (data[at + 1] as number);
      blue += weight * (data[at + 2] as number);
      alpha += weight;
    }
  }
  if (alpha === 0) return [0, 0, 0, 0];
  const area = (row.to - row.from) * (column.to - column.from);
  return [red / alpha, green / alpha, blue / alpha, alpha / area].map(Math.round);
}

/** Returns how much of the pixel that begins at `at` lies within a span. */
function overlap({ from, to }: Span, at: number): number {
  return Math.min(to, at + 1) - Math.max(from, at);
}
