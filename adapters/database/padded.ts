/**
 * Repeats the last value until the length is a power of two. Statements with lists then have few texts, so that they are
 * prepared once instead of for each length. For lists in which a repeated value changes nothing.
 */
export function padded<Value>(values: Value[]): Value[] {
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...Array(Math.max(0, length - values.length)).fill(values.at(-1))];
}
