import { type Command, CommandError } from "./execution/command.ts";
import { toLines } from "./execution/lines.ts";
import { showStatus } from "./execution/progress.ts";
import { createProgram, isHelp } from "./program.ts";

async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  const program = createProgram(async (command, args, options) => {
    // Help and usage errors appear without loading the database.
    const { runCommand } = await import("./execution/run.ts");
    const note = (text: string) => {
      if (isJson) return;
      showStatus("");
      console.error(text);
    };
    const print = (part: object, text: string) => console.log(isJson ? JSON.stringify(part) : text);
    const result = await runCommand(command, { args, options, note, print }).finally(() => showStatus(""));
    if (!result) return;
    console.log(await toText(result, isJson, command));
    if (hasFailed(result)) process.exitCode = 1;
  });
  try {
    await program.parseAsync(argv.length === 0 ? ["start"] : argv, { from: "user" });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = 1;
    const { message } = error as Error;
    const code = error instanceof CommandError ? error.code : "failed";
    console.error(isJson ? JSON.stringify({ error: { code, message } }) : message);
  }
}

async function toText(result: object, isJson: boolean, { isDocument, describe }: Command): Promise<string> {
  if (isJson) return JSON.stringify(result);
  if (describe) return describe(result);
  return isDocument ? JSON.stringify(result, null, 2) : toLines(result).join("\n");
}

function hasFailed(result: object): boolean {
  type Outcome = { ok?: boolean; verdict?: string };
  type Results = { checks?: Outcome[]; logs?: Outcome[]; stopped?: object };
  const { checks = [], logs = [], stopped } = result as Results;
  if (stopped) return true;
  return [...checks, ...logs].some(({ ok, verdict }) => ok === false || verdict === "failed");
}

await main(process.argv.slice(2));
