import { text } from "node:stream/consumers";
import { read } from "read";
import { CommandError } from "./command.ts";

/**
 * Reads a new password: on a terminal by a hidden prompt, twice; otherwise all of stdin up to its last line break.
 * @throws CommandError if the two don't match, or the prompt is canceled
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).replace(/\r?\n$/, "");
  const password = await prompt("Password:");
  if ((await prompt("Confirm password:")) !== password)
    throw new CommandError("invalid_password", "The passwords don't match.");
  return password;
}

async function prompt(label: string): Promise<string> {
  // On stderr, because stdout carries the result. `terminal` hides the input even if stderr is redirected.
  const options = { prompt: label, silent: true, terminal: true, output: process.stderr };
  try {
    return await Promise.race([read(options), endOfInput()]);
  } catch {
    throw new CommandError("canceled", "Canceled.");
  } finally {
    process.stderr.write("\n");
  }
}

/** Rejects after Ctrl-D on an empty line, which the library doesn't report: it only stops reading. */
function endOfInput(): Promise<never> {
  return new Promise((_, reject) => {
    process.stdin.once("pause", () => setImmediate(reject, new Error("end of input")));
  });
}
