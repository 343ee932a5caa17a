import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../../harness/program.ts";

const read = (file: string) => readFileSync(ROOT + file, "utf8");

/** The lines that name classes: of elements, or of the looks that a component has. */
const NAMING = globSync("server/**/*.{ts,js}", { cwd: ROOT })
  .flatMap((file) => read(file).split("\n"))
  .filter((line) => /\bclass(Name|List)?\b|\bkind\b/.test(line))
  .join("\n");

for (const file of globSync("server/ui/css/*.css", { cwd: ROOT })) {
  test(`${file} has rules only for classes that pages use`, (t) => {
    const selectors = read(file).replaceAll(/\/\*[\s\S]*?\*\/|[^{};]*;/g, "");
    const classes = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/g)].map(([, name = ""]) => name));
    const isUsed = (name: string) => new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(NAMING);
    // Of a group such as hue-0 to hue-5, the sources name only the start.
    const unused = [...classes].filter((name) => !isUsed(name.replace(/-\d$/, "-")));
    t.deepEqual(unused, []);
  });
}
