import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

/** A module that a file imports when it runs. */
export type Import = {
  /** A package, or a path relative to the root. */
  specifier: string;
  isFile: boolean;
  /** Whether it imports more than the default export. */
  hasNames: boolean;
};

const STATEMENT = /^(?:import|export)\s+(?:([^;"']*?)\sfrom\s+)?"([^"]+)"/gm;
const CALL = /\bimport\(\s*"([^"]+)"|new URL\(\s*"(\.[^"]+)",\s*import\.meta\.url/g;
const DEFAULT = /^\w+(?:,\s*\{(?:\s*type\s[^,}]+,?)*\s*\})?$/;
const ERASED = /^type\s|^\{(?:\s*type\s[^,}]+,?)*\s*\}$/;

/** Lists what a file imports, without the imports of types. */
export function importsOf(root: string, file: string): Import[] {
  const source = readFileSync(path.join(root, file), "utf8");
  const statements = [...source.matchAll(STATEMENT)]
    .filter(([, names = ""]) => !ERASED.test(names))
    .map(([, names = "", specifier = ""]) => ({ specifier, hasNames: !DEFAULT.test(names) }));
  const calls = [...source.matchAll(CALL)].map(([, imported, read]) => ({
    specifier: imported ?? read ?? "",
    hasNames: true,
  }));
  return [...statements, ...calls]
    .filter(({ specifier }) => !specifier.startsWith("node:"))
    .map(({ specifier, hasNames }) => {
      if (!specifier.startsWith(".")) return { specifier, isFile: false, hasNames };
      return { specifier: path.join(path.dirname(file), specifier), isFile: true, hasNames };
    })
    .filter(({ specifier, isFile }) => !isFile || existsSync(path.join(root, specifier)));
}
