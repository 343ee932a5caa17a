import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Ending, Program, ROOT } from "./program.ts";

/** A fenced block of a document. `title` is the label of its tab, `heading` that of the section. */
export type Block = { language: string; title?: string; code: string; heading: string };

/** The languages of the examples that call the API. */
export const LANGUAGES = ["curl", "TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

/** The documents whose examples are tested. */
export const DOCUMENTS = globSync("{docs/**/*.md,README.md,CONTRIBUTING.md,SECURITY.md}", {
  cwd: ROOT,
}).toSorted();

// Headings and blocks, which may be part of a list.
const PARTS =
  /^#+ (?<heading>.*)$|^(?<indent> *)```(?<language>\w*)(?: title="(?<title>.*)")?\n(?<code>[\s\S]*?)^ *```$/gm;
const SEPARATOR = "---- next example ----";
const PRINT: Record<Language, string> = {
  curl: `echo '${SEPARATOR}'\n`,
  TypeScript: `console.log("${SEPARATOR}");\n`,
  Python: `print("${SEPARATOR}")\n`,
};

/** Returns the fenced blocks of a Markdown document, in order. */
export function blocksOf(document: string): Block[] {
  let heading = "";
  return [...readFileSync(path.join(ROOT, document), "utf8").matchAll(PARTS)].flatMap(({ groups = {} }) => {
    if (groups.heading !== undefined) {
      heading = groups.heading;
      return [];
    }
    const { indent = "", language = "", title, code = "" } = groups;
    return [
      {
        language,
        ...(title && { title }),
        code: `\n${code}`.replaceAll(`\n${indent}`, "\n").slice(1),
        heading,
      },
    ];
  });
}

/** Returns the examples of a document in a language, in order. */
export function examplesIn(document: string, language: Language): Block[] {
  return blocksOf(document).filter(({ title }) => title === language);
}

/** Returns a program of these examples, for the service at a URL. It prints a line between the outputs of two examples. */
export function toProgram(language: Language, examples: Block[], url: string): string {
  return examples
    .map(({ code }) => code)
    .join(PRINT[language])
    .replaceAll('"@linkgate/client"', `"${ROOT}client/src/index.ts"`) // its package has to be built first
    .replaceAll("http://localhost:3000", url);
}

/** Runs a program, like a user who pastes the examples one after the other. Resolves to the output of each. */
export async function outputsOf(
  command: string,
  args: string[],
  settings: Record<string, string>,
): Promise<string[]> {
  const { code, stdout, stderr }: Ending = await new Program(command, args, { settings }).ended;
  if (code !== 0) throw new Error(`${command} exited with ${code}:\n${stdout}${stderr}`);
  return stdout.split(`${SEPARATOR}\n`);
}
