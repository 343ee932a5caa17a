import type { CommandContext, StorageCommand } from "../../server/cli/execution/command.ts";
import { recorded } from "../../server/cli/execution/record-command.ts";
import { createProgram } from "../../server/cli/program.ts";

type Surroundings = Pick<CommandContext, "storage" | "urls" | "settings">;

/**
 * Returns a function that runs a command in this process, and records it. It resolves to what `--json` prints, or throws
 * an error with the code.
 */
export function commandRunner(surroundings: Surroundings) {
  // biome-ignore lint/suspicious/noExplicitAny: each command prints a document of its own shape, which assertions check
  return async (words: string[], password = ""): Promise<any> => {
    let result: object | undefined;
    await createProgram(async (command, args, options) => {
      const input = { args, options, note() {}, print() {}, printFirst: async () => {} };
      const context = { ...surroundings, ...input, readPassword: async () => password };
      result = await recorded(command as StorageCommand & { name: string }, context);
    }).parseAsync(words, { from: "user" });
    return result;
  };
}
