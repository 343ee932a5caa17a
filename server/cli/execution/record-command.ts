import { hostname, userInfo } from "node:os";
import type { Storage } from "../../../adapters/index.ts";
import { type CommandContext, codeOf, type StorageCommand } from "./command.ts";

const REDACTED = "[redacted]";
// What a user may paste by mistake: credentials of this service, signing secrets, and the tokens in its links.
const CREDENTIAL = /\b(?:lg[sar]_|whsec_)[^\s"'&]+/g;
const LINK_TOKEN = /(\/(?:reset-password|invitations|invitation)\/)[^\s/?#]+/g;
const USER_INFO = /^([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/i;
const KEY = /PRIVATE KEY|^\s*\{/;

/** Records the start first, so every change has an entry, even if this process is killed. */
export async function recorded(
  command: StorageCommand & { name: string },
  context: CommandContext,
): Promise<object> {
  if (command.isReadOnly) return command.run(context);
  const { operatorLog } = context.storage;
  // A command that migrates the schema itself may find one that has no such log yet.
  const start = () => operatorLog.start(describe(command, context));
  const started = command.needs === undefined ? await start() : undefined;
  const finish = async (error?: string) => operatorLog.finish(started ?? (await start()), error);
  try {
    const result = await command.run(context);
    await finish().catch(() => {
      // The result may be a secret that is shown only once, so the command doesn't fail.
      context.note("The command succeeded, but its outcome could not be recorded in the operator's log.");
    });
    return result;
  } catch (error) {
    await finish(codeOf(error)).catch(() => {});
    throw error;
  }
}

function describe(
  { name }: { name: string },
  { args, options }: CommandContext,
): Parameters<Storage["operatorLog"]["start"]>[0] {
  return {
    command: name,
    arguments: args.map(redact) as string[],
    options: Object.fromEntries(Object.entries(options).map(([option, value]) => [option, redact(value)])),
    ...whoRuns(),
  };
}

export function whoRuns(): { osUser: string; host: string } {
  return { osUser: osUser(), host: hostname() };
}

function osUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`; // a container may run as a user without a name
  }
}

function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "string") return value;
  if (KEY.test(value)) return REDACTED;
  return value
    .replace(CREDENTIAL, REDACTED)
    .replace(LINK_TOKEN, `$1${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(/\?[^#]*/, (query) => (URL.canParse(value) ? `?${REDACTED}` : query));
}
