import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import manifest from "../../package.json" with { type: "json" };

type License = { license?: { id?: string; name?: string }; expression?: string };
type Component = { "bom-ref": string; name: string; version: string; licenses?: License[] };
type Packages = { properties?: { name: string }[] } & Component;
type Bom = {
  serialNumber: string;
  metadata: { timestamp: string; component: Component };
  components: Packages[];
  dependencies: { ref: string; dependsOn: string[] }[];
};

// `--omit dev` would also leave out the packages that production and development share.
const OPTIONS = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
const bom: Bom = JSON.parse(
  execFileSync("npm", ["sbom", ...OPTIONS], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }),
);
const root = bom.metadata.component;
root.name = manifest.name; // npm takes that of the folder
const direct = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }));
const dependencies = new Map(bom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
const isDirect = (ref: string) => direct.has(ref.slice(0, ref.lastIndexOf("@")));
dependencies.set(root["bom-ref"], dependencies.get(root["bom-ref"])?.filter(isDirect) ?? []);
const used = new Set([root["bom-ref"]]);
for (const ref of used) for (const next of dependencies.get(ref) ?? []) used.add(next);

bom.components = bom.components.filter((component) => used.has(component["bom-ref"]));
for (const component of bom.components)
  component.properties = component.properties?.filter(({ name }) => !name.endsWith(":development")) ?? [];
bom.dependencies = [...used].map((ref) => ({ ref, dependsOn: dependencies.get(ref) ?? [] }));
const nameOf = ({ expression, license }: License) => expression ?? license?.id ?? license?.name;
const lines = bom.components.map(
  ({ name, version, licenses = [] }) => `${name} ${version} ${licenses.map(nameOf).join(" AND ")}\n`,
);
// npm writes the time and a random number. The same commit has the same list.
bom.metadata.timestamp = execFileSync("git", ["log", "-1", "--format=%cI"], { encoding: "utf8" }).trim();
bom.serialNumber = `urn:uuid:${toUuid(hash("sha256", JSON.stringify(bom.components)))}`;
const [folder = "."] = process.argv.slice(2);
writeFileSync(path.join(folder, "sbom.json"), `${JSON.stringify(bom, null, 2)}\n`);
writeFileSync(path.join(folder, "licenses.txt"), lines.toSorted().join(""));

/** A UUID of version 8 (RFC 9562 §5.8) from a hash in hex. */
function toUuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-8$3-8$4-$5");
}
