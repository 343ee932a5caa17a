import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** A change of the product that a test must notice. */
export type Fault = {
  name: string;
  /** The path of the patch. */
  patch: string;
  /** What it breaks, in one sentence. */
  breaks: string;
  /** The test files of which one must fail. */
  killedBy: string[];
  stage: Stage;
};

/** How the test files are run: by `npm test` or by `npm run test:processes`. */
export type Stage = "test" | "processes";

const FOLDER = import.meta.dirname;
const CHECKOUT = path.join(FOLDER, "../..");
const EXTENSION = ".patch";

/** The faults can't be read as they are. */
export class InvalidFault extends Error {
  override readonly name = "InvalidFault";
}

/** Reads the faults with these names, or all of them. @throws InvalidFault */
export function readFaults(names: string[]): Fault[] {
  const all = readdirSync(FOLDER)
    .filter((file) => file.endsWith(EXTENSION))
    .map((file) => path.basename(file, EXTENSION))
    .sort();
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new InvalidFault(`test/faults has no patch ${unknown.join(", ")}.`);
  const faults = (names.length > 0 ? names : all).map(readFault);
  const missing = faults.flatMap(({ name, killedBy }) =>
    killedBy
      .filter((file) => !existsSync(path.join(CHECKOUT, file)))
      .map((file) => `${name}${EXTENSION} names ${file}, which doesn't exist.`),
  );
  if (missing.length > 0) throw new InvalidFault(missing.join("\n"));
  return faults;
}

/** A patch begins with a sentence and with fields, which `git apply` skips. */
function readFault(name: string): Fault {
  const patch = path.join(FOLDER, name + EXTENSION);
  const [header = ""] = readFileSync(patch, "utf8").split("\n--- ", 1);
  const [breaks = "", ...lines] = header.trim().split("\n");
  const fields = new Map(lines.map((line) => line.split(": ", 2) as [string, string]));
  const killedBy = fields.get("Killed by")?.split(", ") ?? [];
  const stage = fields.get("Stage") ?? "test";
  if (!breaks || killedBy.length === 0 || (stage !== "test" && stage !== "processes"))
    throw new InvalidFault(`The header of ${name}${EXTENSION} needs a sentence and "Killed by: test/…".`);
  return { name, patch, breaks, killedBy, stage };
}
