import { readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import test from "ava";

const REQUIREMENTS = 143;
const folder = new URL(".", import.meta.url).pathname;
const readme = readFileSync(`${folder}README.md`, "utf8");
const files = await Array.fromAsync(glob("**/*.test.ts", { cwd: folder }));
const rows = [...readme.matchAll(/^\| (\d+) \| (.*) \| (.*) \|$/gm)].map(
  ([, number, requirement = "", tests = ""]) => ({ number: Number(number), requirement, tests }),
);

test("the table states each security requirement once, in order", (t) => {
  t.deepEqual(
    rows.map(({ number }) => number),
    Array.from({ length: REQUIREMENTS }, (_, index) => index + 1),
  );
  for (const { number, requirement } of rows)
    t.regex(requirement, /^[A-Z`].{20,}\.$/, `requirement ${number} is not a sentence`);
  t.is(new Set(rows.map(({ requirement }) => requirement)).size, REQUIREMENTS);
});

test("each security requirement names tests that exist, or says why there is none", (t) => {
  for (const { number, tests } of rows) {
    const named = [...tests.matchAll(/`([^`]+)`/g)].map(([, name]) => `${name}.test.ts`);
    if (tests.startsWith("– ")) continue;
    t.true(named.length > 0, `requirement ${number} names no test`);
    t.is(new Set(named).size, named.length, `requirement ${number} names a test twice`);
    for (const file of named) t.true(files.includes(file), `requirement ${number}: there is no ${file}`);
  }
});
