import { describeStartupError } from "../../startup-errors.ts";
import type { CommandContext } from "../command.ts";

/** What was checked, and its result: what is right, or what is wrong and how to fix it. */
export type Check = { name: string; ok: boolean; detail: string };

/** Returns what is right. @throws Error that says what is wrong and how to fix it */
export type Inspect = (context: CommandContext) => Promise<string>;

/** Runs a check. Errors of the database are described as at startup. */
export async function runCheck(name: string, inspect: Inspect, context: CommandContext): Promise<Check> {
  try {
    return { name, ok: true, detail: await inspect(context) };
  } catch (error) {
    const detail = describeStartupError(error, context.settings.DATABASE_URL) ?? (error as Error).message;
    return { name, ok: false, detail };
  }
}
