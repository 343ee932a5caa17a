/** Returns what a function returns; undefined if it throws. */
export function tryTo<Value>(run: () => Value): Value | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
