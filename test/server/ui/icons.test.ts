import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../../harness/program.ts";

const symbols = [
  ...readFileSync(`${ROOT}server/ui/assets/icons.svg`, "utf8").matchAll(/<symbol id="([\w-]+)"/g),
];

test("the file has the icons that pages show, and no others", (t) => {
  const sources = globSync("server/**/*.ts", { cwd: ROOT }).map((file) => readFileSync(ROOT + file, "utf8"));
  // By name, or in the list of the sections.
  const shown = sources.join("\n").matchAll(/icon\("([\w-]+)"\)|: \["[\w ]+", "([\w-]+)"\]/g);
  const names = new Set([...shown].map(([, name, section]) => name ?? section));
  t.deepEqual(symbols.map(([, name]) => name).toSorted(), [...names].toSorted());
});
