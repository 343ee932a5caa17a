// Makes a release: npm run release -- <version>
//
// Sets the version, dates the unreleased section of the CHANGELOG, and writes the artifacts to releases/<version>/. It
// neither commits nor publishes; docs/releasing.md lists the next steps. Releasing a commit again writes identical files.
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import manifest from "../../package.json" with { type: "json" };

const ROOT = path.join(import.meta.dirname, "../..");
const SEMVER = /^\d+\.\d+\.\d+(-[\w.]+)?$/;
// Besides the manifest and the lock file.
const PACKAGES = ["certification", "client"];
const WITH_VERSION = [
  ...PACKAGES.map((name) => `${name}/package.json`),
  "docs/operate/deploy/kubernetes.yaml",
];
const CHANGED = ["package.json", "package-lock.json", "CHANGELOG.md", ...WITH_VERSION];
const OPEN_SECTION = /^## \S+ – unreleased$/m;
// The tests of the next release start these. None needs the list of breached passwords, which takes most of the space.
const SOURCES = "{server,adapters,resources,certification/src}/**/*";
const OTHER_SOURCES = ["docs/verify-audit-log.mjs", "package.json"];

const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 30 }).trimEnd();
const edit = (file: string, change: (text: string) => string) => {
  const text = readFileSync(path.join(ROOT, file), "utf8");
  const changed = change(text);
  if (changed !== text) writeFileSync(path.join(ROOT, file), changed);
};

const [version = ""] = process.argv.slice(2);
checkInput();
const folder = path.join(ROOT, "releases", version);
setVersion();
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const source of [".", ...PACKAGES.map((name) => `./${name}`)])
  execFileSync("npm", ["pack", source, "--silent", "--pack-destination", folder], {
    cwd: ROOT,
    stdio: "ignore",
  });
cpSync(path.join(ROOT, "docs/operate/deploy/Containerfile"), path.join(folder, "Containerfile"));
run("npm", "run", "--silent", "sbom", "--", folder);
writeFileSync(path.join(folder, `linkgate-${version}-sources.tar.zst`), archiveSources());
const files = readdirSync(folder).toSorted();
const sums = files.map((file) => `${hash("sha256", readFileSync(path.join(folder, file)))}  ${file}\n`);
writeFileSync(path.join(folder, "SHA256SUMS"), sums.join(""));
for (const file of [...files, "SHA256SUMS"])
  console.log(
    `${path.relative(ROOT, path.join(folder, file))} ${statSync(path.join(folder, file)).size} bytes`,
  );

/** Exits with a sentence. */
function checkInput(): void {
  const fail = (message: string): never => {
    console.error(message);
    process.exit(1);
  };
  if (!SEMVER.test(version)) fail("Usage: npm run release -- <version>, such as 1.0.0");
  // A prerelease may follow or precede its release.
  const numbersOf = (text: string) => text.replace(/-.*/, "");
  if (numbersOf(version).localeCompare(numbersOf(manifest.version), "en", { numeric: true }) < 0)
    fail(`The version must be higher than ${manifest.version}.`);
  const changed = run("git", "status", "--porcelain")
    .split("\n")
    .map((line) => line.slice(3))
    .filter((file) => file !== "" && !CHANGED.includes(file));
  if (changed.length > 0) fail(`Commit or discard your changes first: ${changed.join(", ")}`);
  const changelog = readFileSync(path.join(ROOT, "CHANGELOG.md"), "utf8");
  if (!OPEN_SECTION.test(changelog) && !changelog.includes(`\n## ${version} – `))
    fail("CHANGELOG.md has no section that is unreleased.");
}

/** A second run changes nothing. */
function setVersion(): void {
  if (version !== manifest.version)
    run("npm", "version", version, "--no-git-tag-version", "--ignore-scripts");
  for (const file of WITH_VERSION) edit(file, (text) => text.replaceAll(manifest.version, version));
  edit("package-lock.json", (text) => {
    const lock = JSON.parse(text);
    for (const name of PACKAGES) lock.packages[name].version = version;
    return `${JSON.stringify(lock, null, 2)}\n`;
  });
  const date = run("git", "log", "-1", "--format=%cs");
  edit("CHANGELOG.md", (text) => text.replace(OPEN_SECTION, `## ${version} – ${date}`));
}

/** The owner, times and order of the files are the same in each run. */
function archiveSources(): Buffer {
  const isSource = (file: string) => statSync(path.join(ROOT, file)).isFile() && !file.endsWith(".bloom");
  const names = [...globSync(SOURCES, { cwd: ROOT }).filter(isSource), ...OTHER_SOURCES].toSorted();
  const options = ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=644", "-cf", "-"];
  const input = names.join("\n");
  const tar = execFileSync("tar", [...options, "-T", "-"], { cwd: ROOT, input, maxBuffer: 2 ** 30 });
  return zstdCompressSync(tar, { params: { [constants.ZSTD_c_compressionLevel]: 19 } });
}
