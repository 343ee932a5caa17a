type Outcome = { status: number; retryAfter: string | null; ms: number };

/** Sends requests of several kinds until it is stopped, in `lanes` per kind, each without a pause. */
export function startLoad<Kind extends string>(
  kinds: Record<Kind, (count: number) => Promise<{ status: number; headers: Headers }>>,
  lanes: number,
) {
  const outcomes = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, [] as Outcome[]])) as Record<
    Kind,
    Outcome[]
  >;
  let count = 0;
  let isStopped = false;

  async function runLane(kind: Kind) {
    while (!isStopped) {
      const start = performance.now();
      const { status, headers } = await kinds[kind](++count);
      outcomes[kind].push({ status, retryAfter: headers.get("retry-after"), ms: performance.now() - start });
    }
  }

  const running = (Object.keys(kinds) as Kind[]).flatMap((kind) =>
    Array.from({ length: lanes }, () => runLane(kind)),
  );
  return {
    outcomes,
    reset: () => (Object.values(outcomes) as Outcome[][]).forEach((list) => void list.splice(0)),
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}
