const pending = new Set<() => unknown>();

/** Registers what has to be undone, even if the run is interrupted. Returns a function that does it now. */
export function cleanUp(undo: () => unknown): () => Promise<void> {
  const run = async () => {
    if (pending.delete(run)) await undo();
  };
  pending.add(run);
  return run;
}

/** Undoes everything, the latest first. */
export async function cleanUpAll(): Promise<void> {
  for (const undo of [...pending].reverse()) await undo();
}
