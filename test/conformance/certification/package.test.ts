import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "ava";
import manifest from "../../../package.json" with { type: "json" };
import { ROOT, temporaryFolder } from "../../harness/program.ts";
import { outputOf } from "../../harness/release/package.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "processes";

const folder = temporaryFolder("certification");
const service = await startTestService();
// With its only dependency, from this checkout: the tests reach no registry.
const pack = async (source: string, ...options: string[]) =>
  (await outputOf("npm", ["pack", source, "--silent", "--pack-destination", folder, ...options])).trim();
const tarball = await pack("./certification");
const overrides = { jose: `file:${await pack("./node_modules/jose", "--ignore-scripts")}` };
await writeFile(
  path.join(folder, "package.json"),
  JSON.stringify({ private: true, type: "module", overrides }),
);
const options = ["--no-audit", "--no-fund", `--registry=${service.url}`];
await outputOf("npm", ["install", ...options, `./${tarball}`], { cwd: folder });

test("the package has the version of linkgate, and contains the compiled checks only", async (t) => {
  const installed = path.join(folder, "node_modules/@linkgate/certification");
  t.is(JSON.parse(await readFile(path.join(installed, "package.json"), "utf8")).version, manifest.version);
  t.deepEqual((await readdir(installed)).toSorted(), ["LICENSE", "README.md", "dist", "package.json"]);
  const compiled = await readdir(path.join(installed, "dist"), { recursive: true });
  t.true(compiled.includes("index.js") && compiled.includes("index.d.ts"));
  for (const name of compiled) t.regex(name, /^(checks|[\w/-]+\.(js|d\.ts))$/);
});

test("the example of the README compiles, and checks a server without the rest of linkgate", async (t) => {
  const readme = await readFile(path.join(ROOT, "certification/README.md"), "utf8");
  const [, example = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  const { clientId, clientSecret } = await service.createOrganization();
  const code = example.replace("https://links.example", service.url).replace("lgc_…", clientId);
  await writeFile(path.join(folder, "check.ts"), code);
  const types = path.join(ROOT, "node_modules/@types");
  const strict = `--strict --target es2024 --module nodenext --types node --typeRoots ${types}`.split(" ");
  const tsc = path.join(ROOT, "node_modules/.bin/tsc");
  await outputOf(process.execPath, [tsc, ...strict, "check.ts"], { cwd: folder });
  const settings = { CLIENT_SECRET: clientSecret };
  const printed = await outputOf(process.execPath, ["check.js"], { cwd: folder, settings });
  t.regex(printed, /^\d+ checks: [1-9]\d+ passed, 0 failed, \d+ warnings, \d+ skipped$/m, printed);
});
