import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { outputOf, ROOT } from "./program.ts";

/** A fenced block of a document. `title` is the label of its tab, `heading` that of the section. */
export type Block = { language: string; title?: string; code: string; heading: string };

export const LANGUAGES = ["curl", "TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

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

export function blocksOf(document: string): Block[] {
  let heading = "";
  return [...readFileSync(path.join(ROOT, document), "utf8").matchAll(PARTS)].flatMap(({ groups = {} }) => {
    if (groups.heading !== undefined) {
      heading = groups.heading;
      return [];
    }
    const { indent = "", language = "", title, code = "" } = groups;
    const unindented = `\n${code}`.replaceAll(`\n${indent}`, "\n").slice(1);
    return [{ language, ...(title && { title }), code: unindented, heading }];
  });
}

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
export async function outputsOf(command: string, args: string[], settings: Record<string, string>) {
  return (await outputOf(command, args, { settings })).split(`${SEPARATOR}\n`);
}
