import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import manifest from "../../package.json" with { type: "json" };
import { Program, ROOT, temporaryFolder } from "../harness/program.ts";

type Locked = {
  version: string;
  dev?: true;
  link?: true;
  integrity?: string;
  dependencies?: Record<string, string>;
};
type Component = { name: string; version: string; hashes?: object[]; licenses?: object[] };

const folder = temporaryFolder("sbom");

const read = (file: string) => readFileSync(path.join(folder, file), "utf8");
const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, "utf8")) as {
  packages: Record<string, Locked>;
};
// The TypeScript client is a package of its own, which the server doesn't load.
const ofClient = new Set(Object.keys(packages.client?.dependencies ?? {}));
for (const name of ofClient)
  for (const next of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {})) ofClient.add(next);
const locked = Object.entries(packages)
  .filter(([place, { link }]) => place.includes("node_modules/") && !link)
  .map(([place, entry]) => ({ ...entry, name: place.slice(place.lastIndexOf("node_modules/") + 13) }))
  .filter(({ name }) => !ofClient.has(name));
const idOf = ({ name, version }: { name: string; version: string }) => `${name} ${version}`;

test("npm run sbom lists every production package with its version, hash and license", async (t) => {
  const program = new Program("npm", ["run", "--silent", "sbom", "--", folder]);
  t.like(await program.ended, { code: 0, stderr: "" });

  const { bomFormat, specVersion, metadata, components, dependencies } = JSON.parse(read("sbom.json"));
  t.is(bomFormat, "CycloneDX");
  t.true(Number(specVersion) >= 1.5, specVersion);
  t.like(metadata.component, { name: "linkgate", version: manifest.version });
  const listed = new Set<string>(components.map(idOf));
  t.is(listed.size, components.length, "none is listed twice");
  t.deepEqual(locked.filter((entry) => !entry.dev && !listed.has(idOf(entry))).map(idOf), []);

  const withoutDetails = components.filter(
    ({ hashes, licenses }: Component) => !hashes?.length || !licenses?.length,
  );
  t.deepEqual(withoutDetails.map(idOf), []);
  t.is(dependencies.length, components.length + 1, "the packages, and linkgate itself");

  const names = new Set(components.map(({ name }: Component) => name));
  for (const name of Object.keys(manifest.peerDependencies)) t.true(names.has(name), `optional: ${name}`);
  for (const name of ["ava", "typescript", "playwright-core"])
    t.false(names.has(name), `development: ${name}`);

  const lines = read("licenses.txt").trimEnd().split("\n");
  const licensed = lines.map((line) => line.split(" ").slice(0, 2).join(" "));
  t.deepEqual(licensed, [...listed].toSorted());
  for (const line of lines) t.regex(line, /^\S+ \S+ (?!undefined)[\w.()-]+( (AND|OR|WITH) [\w.()-]+)*$/);
});
