import type { Database } from "../database/index.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";

// Precise enough for display.
const PRECISION_MS = 60_000;
// Grants that are used within this time share a statement.
const GATHER_MS = 200;
const MAX_GRANTS = 500;

export type GrantUseRecorder = ReturnType<typeof createGrantUseRecorder>;

/** Records when grants were last used, off the request path. A crash loses the uses of the last moment. */
export function createGrantUseRecorder({ knex }: Database) {
  const pending = new Set<string>();
  const buffer = createWriteBehindBuffer(store, GATHER_MS);

  async function store() {
    const ids = [...pending].sort();
    pending.clear();
    for (let start = 0; start < ids.length; start += MAX_GRANTS) {
      const chunk = ids.slice(start, start + MAX_GRANTS);
      // A failure is ignored: the next use of the grant is recorded again.
      await knex("grants")
        .whereIn("id", chunk)
        .update({ last_used_at: Date.now() })
        .catch(() => {});
    }
  }

  return {
    /** Records the use of a grant unless `lastUsedAt`, its stored time, is less than a minute ago. */
    record({ grantId, lastUsedAt }: { grantId: string | null; lastUsedAt: number | null }): void {
      if (!grantId || (lastUsedAt !== null && Date.now() - lastUsedAt < PRECISION_MS)) return;
      pending.add(grantId);
      buffer.schedule();
    },

    /** Resolves when everything recorded so far is stored or has failed to be stored. */
    settled: buffer.settled,
  };
}
