import { PRODUCTION_CHOICES } from "../../settings/production-choices.ts";
import { CommandError, type CommandInput, eitherOf, missingOption } from "../execution/command.ts";

const OPTIONS = PRODUCTION_CHOICES.map(({ name, meanings }) => {
  const flag = name.toLowerCase().replaceAll("_", "-");
  const member = flag.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return { name, meanings, member, syntax: `--${flag} <${Object.keys(meanings).join("|")}>` };
});

export const choiceOptions = Object.fromEntries(
  OPTIONS.map(({ syntax, name }) => [syntax, `value of ${name}`]),
);

/**
 * Returns the settings that production requires and that are not set yet, from the options, or from a person at the
 * terminal. Throws CommandError if a value is wrong, or if one is missing although `isRequired`.
 */
export async function readChoices(
  options: CommandInput["options"],
  { isRequired, isSet }: { isRequired: boolean; isSet(name: string): boolean },
): Promise<Record<string, string>> {
  const canAsk = process.stdin.isTTY && process.stderr.isTTY;
  const choices: Record<string, string> = {};
  for (const { name, meanings, member, syntax } of OPTIONS.filter(({ name }) => !isSet(name))) {
    const answer = options[member] ?? (canAsk ? await ask(name, meanings) : undefined);
    if (answer === undefined && isRequired) throw missingOption("usage", syntax);
    if (answer === undefined) continue;
    if (!Object.hasOwn(meanings, String(answer)))
      throw new CommandError("invalid_setting", `${name} must be ${eitherOf(Object.keys(meanings))}.`);
    choices[name] = String(answer);
  }
  return choices;
}

async function ask(name: string, meanings: Record<string, string>): Promise<string> {
  const lines = Object.entries(meanings).map(([value, meaning]) => `  ${value.padEnd(8)}${meaning}\n`);
  process.stderr.write(`${name}\n${lines.join("")}`);
  // It opens databases for other commands, which help has no use for.
  const { prompt } = await import("../execution/run.ts");
  return (await prompt(`${eitherOf(Object.keys(meanings))}?`, false)).trim();
}
