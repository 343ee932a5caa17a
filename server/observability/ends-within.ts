/** Resolves to true if work finishes within `ms` milliseconds, and otherwise to false. It isn't canceled. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: deadline, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  try {
    return await Promise.race([work.then(() => true), deadline]);
  } finally {
    clearTimeout(timer);
  }
}
