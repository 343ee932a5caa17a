/** `stop` ends the work after the current batch. */
export type Schedule = { stop(): Promise<void> };

/** Runs work at intervals, but not while it is still running. Its signal is aborted when it should stop. */
export function schedule(
  run: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
  { everyMs, firstAfterMs = everyMs }: { everyMs: number; firstAfterMs?: number },
): Schedule {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  const start = () => {
    running ??= run(stopping.signal)
      .catch(onError)
      .finally(() => {
        running = undefined;
      });
  };
  const first = setTimeout(start, firstAfterMs).unref();
  const timer = setInterval(start, everyMs).unref();
  return {
    async stop() {
      clearTimeout(first);
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}
