import type { LogHead } from "../../../adapters/events/verify-chain.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { type Command, CommandError, EXAMPLE_ORG, ORG_ID } from "../execution/command.ts";

const LIMIT = 50;
const LIMIT_MAX = 1000;
const LOG = `${ORG_ID}, or "operator"; without it, every log`;
const HEAD = /^(\w+):(\d{1,15}):([0-9a-f]{64})$/;

export const auditCommands: Command[] = [
  {
    name: "audit operator",
    summary: "List the commands that changed something",
    description: "List the commands that changed something, newest first, and who ran them",
    options: {
      "--limit <count>": `how many, 1 to ${LIMIT_MAX} (default: ${LIMIT})`,
      "--before <id>": "only those before this one",
    },
    example: "--limit 10",
    isReadOnly: true,
    async run({ options: { limit, before }, storage }) {
      const commands = await storage.operatorLog.list(parseLimit(limit), before as string | undefined);
      return {
        commands: commands.map(({ osUser, startedAt, finishedAt, ...command }) => ({
          ...command,
          os_user: osUser,
          started_at: new Date(startedAt).toISOString(),
          finished_at: finishedAt === null ? null : new Date(finishedAt).toISOString(),
        })),
      };
    },
  },
  {
    name: "audit verify",
    summary: "Verify the hash chains of the audit logs",
    description: "Verify the hash chains of the audit logs; exits with 1 if one is broken",
    arguments: { "[log]": LOG },
    options: { "--head <head...>": "a head that audit head printed, which the log must still contain" },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    async run({ args: [id], options, storage }) {
      const kept = ((options.head ?? []) as string[]).map((head) => parseHead(head, id));
      const logs = await storage.verifyAuditLogs(id, kept);
      if (logs.length === 0) throw notFound(`organization ${id}`);
      return { logs };
    },
  },
  {
    name: "audit head",
    summary: "Print the heads of the audit logs",
    description: "Print the last entry of each audit log, to keep elsewhere and to verify the log with later",
    arguments: { "[log]": LOG },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    describe: (result) => (result as { heads: { head: string }[] }).heads.map(({ head }) => head).join("\n"),
    async run({ args: [id], storage }) {
      const heads = await storage.audit.heads(id);
      if (id && heads.length === 0) throw notFound(`audit log ${id}`);
      return {
        heads: heads.map((head) => ({ ...head, head: `${head.organization_id}:${head.seq}:${head.hash}` })),
      };
    },
  },
];

function parseLimit(value: unknown = LIMIT): number {
  const limit = /^\d{1,4}$/.test(String(value)) ? Number(value) : 0;
  if (limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new CommandError("invalid_limit", `--limit must be a number from 1 to ${LIMIT_MAX}.`);
}

function parseHead(text: string, log: string | undefined): LogHead {
  const [, organization_id, seq, hash] = HEAD.exec(text) ?? [];
  if (organization_id && hash && organization_id === (log ?? organization_id))
    return { organization_id, seq: Number(seq), hash };
  throw new CommandError("invalid_head", `${text} is not the head of ${log ?? "a log"}.`);
}
