import { type Command, CommandError, EXAMPLE_ORG, notFound, ORG_ID } from "../execution/command.ts";

const LIMIT = 50;
const LIMIT_MAX = 1000;

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
    arguments: { "[log]": `${ORG_ID}, or "operator"; without it, every log` },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    async run({ args: [id], storage }) {
      const logs = await storage.verifyAuditLogs(id);
      if (logs.length === 0) throw notFound("Organization", id);
      return { logs };
    },
  },
  {
    name: "audit accept",
    summary: "Accept all audit logs as they are",
    description:
      "Authenticate the heads of all audit logs as they are, after the encryption key was lost or a fault was examined",
    irreversible: () => "Accept all audit logs as they are, even those that were changed?",
    async run({ storage }) {
      await storage.acceptAuditLogs();
      return { logs: await storage.verifyAuditLogs() };
    },
  },
];

function parseLimit(value: unknown = LIMIT): number {
  const limit = /^\d{1,4}$/.test(String(value)) ? Number(value) : 0;
  if (limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new CommandError("invalid_limit", `--limit must be a number from 1 to ${LIMIT_MAX}.`);
}
