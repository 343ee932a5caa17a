import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../harness/program.ts";

const read = (file: string) => readFileSync(ROOT + file, "utf8");
const sources = globSync("server/**/*.{ts,js}", { cwd: ROOT }).map(read).join("\n");
/** The lines that name classes: of elements, or of the looks that a component has. */
const naming = sources.split("\n").filter((line) => /\bclass(Name|List)?\b|\bkind\b/.test(line));

const namesIn = (text: string, pattern: RegExp) =>
  Array.from(text.matchAll(pattern), ([, name = ""]) => name);

for (const file of globSync("server/ui/css/*.css", { cwd: ROOT }))
  test(`${file} has rules only for classes that pages use`, (t) => {
    const selectors = read(file).replaceAll(/\/\*[\s\S]*?\*\/|[^{};]*;/g, "");
    const unused = namesIn(selectors, /\.([a-z][\w-]*)/g).filter((name) => {
      // Of a group such as hue-0 to hue-5, the sources name only the start.
      const word = new RegExp(`(?<![\\w-])${name.replace(/-\d$/, "-")}(?![\\w-])`);
      return !naming.some((line) => word.test(line));
    });
    t.deepEqual(unused, []);
  });

test("the file has the icons that pages show, and no others", (t) => {
  const shown = namesIn(sources, /\bicon\("([\w-]+)"\)/g);
  // The list of the sections has their names and icons.
  const ofSections = namesIn(read("server/ui/dashboard-layout.ts"), /: \["[\w ]+", "([\w-]+)"\]/g);
  const symbols = namesIn(read("server/ui/assets/icons.svg"), /<symbol id="([\w-]+)"/g);
  t.deepEqual(new Set(symbols.toSorted()), new Set([...shown, ...ofSections].toSorted()));
});
