import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../../harness/program.ts";

const read = (file: string) => readFileSync(ROOT + file, "utf8");

test("the file has the icons that pages show, and no others", (t) => {
  const sources = globSync("server/**/*.ts", { cwd: ROOT }).map(read).join("\n");
  const shown = [
    ...sources.matchAll(/\bicon\("([\w-]+)"\)/g),
    // The list of the sections has their names and icons.
    ...read("server/ui/dashboard-layout.ts").matchAll(/: \["[\w ]+", "([\w-]+)"\]/g),
  ];
  const symbols = read("server/ui/assets/icons.svg").matchAll(/<symbol id="([\w-]+)"/g);
  const names = (matches: Iterable<RegExpMatchArray>) =>
    [...new Set([...matches].map(([, name]) => name))].toSorted();
  t.deepEqual(names(symbols), names(shown));
});
