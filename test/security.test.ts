import { readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import test from "ava";

const REQUIREMENTS = 132;
const folder = new URL(".", import.meta.url).pathname;
const readme = readFileSync(`${folder}README.md`, "utf8");
const files = await Array.fromAsync(glob("**/*.test.ts", { cwd: folder }));

/** The row of a requirement: the tests that hold it, or why there is none. */
function rowOf(requirement: number): string {
  return new RegExp(`^\\| ${requirement} \\| (.*) \\|$`, "m").exec(readme)?.[1] ?? "";
}

test("every security requirement has a test that exists, or says why not", (t) => {
  for (let requirement = 1; requirement <= REQUIREMENTS; requirement++) {
    const row = rowOf(requirement);
    const named = row.startsWith("–")
      ? []
      : [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => `${name}.test.ts`);
    t.true(row.startsWith("– ") || named.length > 0, `requirement ${requirement} has no row`);
    for (const file of named) t.true(files.includes(file), `requirement ${requirement}: there is no ${file}`);
  }
});

test("every requirement that a title names is found from the table", (t) => {
  for (const file of files) {
    for (const [, list = ""] of readFileSync(folder + file, "utf8").matchAll(/["`]sec ([\d, ]+):/g)) {
      for (const requirement of list.split(",").map(Number)) {
        t.true(rowOf(requirement).includes(`\`${file.replace(".test.ts", "")}\``), `${requirement}: ${file}`);
      }
    }
  }
});
