// What the tests of a file have opened, the latest last.
const open = new Set<() => unknown>();

/** Calls `close` after the tests of the file, unless the function that it returns was called before. */
export function closeAfterTests<T>(close: () => T): () => T {
  let closed: { result: T } | undefined;
  const closeOnce = () => {
    open.delete(closeOnce);
    closed ??= { result: close() };
    return closed.result;
  };
  open.add(closeOnce);
  return closeOnce;
}

/** Closes what the tests of a file have left open, the latest first. @throws AggregateError */
export async function closeAll(): Promise<void> {
  const errors: unknown[] = [];
  for (const close of [...open].reverse())
    try {
      await close();
    } catch (error) {
      errors.push(error);
    }
  if (errors.length > 0) throw new AggregateError(errors, "what the tests opened could not be closed");
}
