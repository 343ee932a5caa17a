import type { Database } from "./database.ts";

/** Notes when grants were last used, beside the requests that use them. */
export type UsageNotes = {
  /** `lastUsedAt` is what the grant says now; what was noted within the last minute is left as it is. */
  note(used: { grantId: string | null; lastUsedAt: number | null }): void;
  /** Resolves when what was noted so far is stored, or could not be. */
  settled(): Promise<void>;
};

// As exact as anybody needs to know.
const PRECISION_MS = 60_000;
// Grants that are used in the same moment share a statement.
const GATHER_MS = 200;
const MAX_GRANTS = 500;

/** The notes of one process; a crash loses what was used in its last moment. */
export function createUsageNotes({ knex }: Database): UsageNotes {
  const noted = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<void> = Promise.resolve();

  async function store() {
    const ids = [...noted].sort();
    noted.clear();
    for (let start = 0; start < ids.length; start += MAX_GRANTS) {
      const some = ids.slice(start, start + MAX_GRANTS);
      // What cannot be stored now is noted again with the next use.
      await knex("grants")
        .whereIn("id", some)
        .update({ last_used_at: Date.now() })
        .catch(() => {});
    }
  }

  function storeAfterThose() {
    timer = undefined;
    storing = storing.then(store);
  }

  return {
    note({ grantId, lastUsedAt }) {
      if (!grantId || (lastUsedAt !== null && Date.now() - lastUsedAt < PRECISION_MS)) return;
      noted.add(grantId);
      timer ??= setTimeout(storeAfterThose, GATHER_MS);
    },
    settled() {
      if (timer) {
        clearTimeout(timer);
        storeAfterThose();
      }
      return storing;
    },
  };
}
