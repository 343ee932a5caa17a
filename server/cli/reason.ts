import { hasAtMost, isLine } from "../../resources/http/text.ts";
import { type CommandContext, CommandError } from "./command.ts";

const REASON_MAX = 255;

/** Returns the option `--reason` of a command. */
export function reasonOption(readers: string): Record<string, string> {
  return { "--reason <text>": `why, for ${readers}: 1 to ${REASON_MAX} characters` };
}

/** Returns the given reason, or null. @throws CommandError `invalid_reason` */
export function reasonOf({ reason }: CommandContext["options"]): string | null {
  if (typeof reason !== "string") return null;
  const text = reason.trim();
  if (text !== "" && hasAtMost(REASON_MAX, text) && isLine(text)) return text;
  throw new CommandError(
    "invalid_reason",
    `--reason must be 1 to ${REASON_MAX} characters without control characters.`,
  );
}
