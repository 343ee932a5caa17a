import { type Command, CommandError, codeOf } from "./execution/command.ts";
import { print, printSecret, reportError, toLines } from "./execution/output.ts";
import { printStatus } from "./execution/progress.ts";
import { createProgram, isHelp } from "./program.ts";

async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  let hasPrinted = false;
  const program = createProgram(async (command, args, options) => {
    // Help and usage errors appear without loading the database.
    const { runCommand } = await import("./execution/run.ts");
    const note = (text: string) => {
      if (isJson) return;
      printStatus("");
      console.error(text);
    };
    const printPart = (part: object, text: string) => print(`${isJson ? JSON.stringify(part) : text}\n`);
    const printFirst = async (result: object) => {
      // A conflict rolls back a transaction before this, so it isn't repeated with another secret.
      if (hasPrinted) throw new CommandError("failed", "The change was not made.");
      printSecret(`${await toText(result, isJson, command)}\n`);
      hasPrinted = true;
    };
    const input = { args, options, note, print: printPart, printFirst };
    const result = await runCommand(command, input).finally(() => printStatus(""));
    if (!result || hasPrinted) return;
    if (hasFailed(result)) process.exitCode = 1;
    const isChange = "run" in command && !command.isReadOnly;
    print(`${await toText(result, isJson, command)}\n`, isChange ? " The change was made." : "");
  });
  try {
    await program.parseAsync(argv.length === 0 ? ["start"] : argv, { from: "user" });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = 1;
    const { message } = error as Error;
    const remark = hasPrinted ? " The printed result is not valid. Run the command again." : "";
    reportError(`${message}${remark}`, isJson && codeOf(error));
  }
}

async function toText(result: object, isJson: boolean, { describe }: Command): Promise<string> {
  if (isJson) return JSON.stringify(result);
  return describe ? describe(result) : toLines(result).join("\n");
}

function hasFailed(result: object): boolean {
  type Outcome = { ok?: boolean; verdict?: string };
  type Results = { checks?: Outcome[]; logs?: Outcome[]; stopped?: object };
  const { checks = [], logs = [], stopped } = result as Results;
  if (stopped) return true;
  return [...checks, ...logs].some(({ ok, verdict }) => ok === false || verdict === "failed");
}

await main(process.argv.slice(2));
