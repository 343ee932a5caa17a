import { type EventType, OPERATOR } from "../../resources/events/types.ts";
import type { Database } from "../database/index.ts";
import { eventRow } from "./outbox.ts";

/** A command as it was typed, without secrets, and who ran it. */
export type CommandRun = {
  command: string;
  arguments: string[];
  options: Record<string, unknown>;
  osUser: string;
  host: string;
};

/** A recorded command. Times are epoch milliseconds. */
export type RecordedCommand = CommandRun & {
  id: string;
  startedAt: number;
  /** Null while the command runs, and if it was interrupted. */
  finishedAt: number | null;
  outcome: "succeeded" | "failed" | null;
  error: string | null;
};

const STARTED = "operator.command_started";
const FINISHED = "operator.command_finished";

/** Creates the log of the operator's commands: events that belong to no organization, and are chained like others. */
export function createOperatorLog({ knex, transaction }: Pick<Database, "knex" | "transaction">) {
  async function record(type: typeof STARTED | typeof FINISHED, subject: string | null, data: object) {
    const row = eventRow(OPERATOR, { organizationId: OPERATOR.id, type, subject, data });
    await transaction((trx) => trx("events").insert(row));
    return row.id;
  }

  const entries = (type: EventType) =>
    knex("events").where({ organization_id: OPERATOR.id, audited: true, type });

  return {
    /** Records the start of a command, before it changes anything. Resolves to the ID of the entry. */
    start: ({ osUser, ...run }: CommandRun): Promise<string> =>
      record(STARTED, null, { ...run, os_user: osUser }),

    /** Records the end of a command, with the code of its error if it failed. */
    async finish(id: string, error?: string): Promise<void> {
      const outcome = error === undefined ? "succeeded" : "failed";
      await record(FINISHED, id, { command_id: id, outcome, ...(error !== undefined && { error }) });
    },

    /** Lists commands, newest first; `before` is the ID of the previous page's last one. */
    async list(limit: number, before?: string): Promise<RecordedCommand[]> {
      const query = entries(STARTED).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      const started = await query.select("id", "created_at", "data");
      const ids = started.map(({ id }) => id);
      // IDs of a process sort by time, so no command ends before the oldest one of the page.
      const finished = await entries(FINISHED)
        .where("id", ">", ids.at(-1) ?? "")
        .whereIn("subject", ids)
        .select("subject", "created_at", "data");
      const ends = new Map(finished.map(({ subject, ...end }) => [subject, end]));
      return started.map(({ id, created_at, data }) => {
        const { os_user, ...run } = JSON.parse(data);
        const end = ends.get(id);
        const { outcome = null, error = null } = end ? JSON.parse(end.data) : {};
        return {
          id,
          ...run,
          osUser: os_user,
          startedAt: created_at,
          finishedAt: end?.created_at ?? null,
          outcome,
          error,
        };
      });
    },
  };
}
