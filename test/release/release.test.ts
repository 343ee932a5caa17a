import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import test from "ava";
import { Program, temporaryFolder } from "../harness/program.ts";
import { copyRepository, outputOf } from "../harness/release/package.ts";

const VERSION = "9.9.0";
const folder = temporaryFolder("release");
const DATE = "2026-01-02T03:04:05Z";
const env = { ...process.env, GIT_COMMITTER_DATE: DATE, GIT_AUTHOR_DATE: DATE };
const AUTHOR = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", [...AUTHOR, ...args], { cwd, encoding: "utf8", env });

function createCopy(name: string): string {
  const copy = path.join(folder, name);
  copyRepository(copy);
  git(copy, "init", "--quiet");
  writeFileSync(path.join(copy, ".git/info/exclude"), "node_modules\n");
  git(copy, "add", ".");
  git(copy, "commit", "--quiet", "--message", "test: everything");
  return copy;
}

const release = (copy: string, ...words: string[]) =>
  new Program("npm", ["run", "--silent", "release", "--", ...words], { cwd: copy }).ended;
const filesIn = (copy: string) => readdirSync(path.join(copy, "releases", VERSION)).toSorted();
const sumsOf = (copy: string) => readFileSync(path.join(copy, "releases", VERSION, "SHA256SUMS"), "utf8");

test.serial("a release has packages, a list of packages, licenses, an archive and checksums", async (t) => {
  const copy = createCopy("first");
  const { code, stderr } = await release(copy, VERSION);
  t.is(code, 0, stderr);
  const packages = ["linkgate", "linkgate-certification", "linkgate-client"].map(
    (name) => `${name}-${VERSION}.tgz`,
  );
  const sources = `linkgate-${VERSION}-sources.tar.zst`;
  const files = ["Containerfile", "SHA256SUMS", "licenses.txt", "sbom.json", sources, ...packages];
  t.deepEqual(filesIn(copy), files.toSorted());
  const read = (file: string) => readFileSync(path.join(copy, "releases", VERSION, file));
  const sums = files.filter((file) => file !== "SHA256SUMS").toSorted();
  t.is(sumsOf(copy), sums.map((file) => `${hash("sha256", read(file))}  ${file}\n`).join(""));
  for (const file of packages) {
    const tarball = path.join(copy, "releases", VERSION, file);
    const manifest = await outputOf("tar", ["xzOf", tarball, "package/package.json"]);
    t.is(JSON.parse(manifest).version, VERSION);
  }
  const { metadata } = JSON.parse(String(read("sbom.json")));
  t.deepEqual([metadata.component.version, metadata.timestamp.slice(0, 10)], [VERSION, "2026-01-02"]);
  const archive = zstdDecompressSync(read(sources));
  t.true(archive.includes("server/main.ts") && archive.includes("adapters/index.ts"));

  t.true(readFileSync(path.join(copy, "CHANGELOG.md"), "utf8").includes(`\n## ${VERSION} – 2026-01-02\n`));
  const changed = git(copy, "status", "--porcelain")
    .match(/(?<=^...).*$/gm)
    ?.toSorted();
  const manifests = [
    "certification/package.json",
    "client/package.json",
    "package-lock.json",
    "package.json",
  ];
  t.deepEqual(changed, ["CHANGELOG.md", "docs/operate/deploy/kubernetes.yaml", ...manifests].toSorted());
});

test.serial("a release has the same bytes in another folder", async (t) => {
  const second = createCopy("second");
  t.is((await release(second, VERSION)).code, 0);
  t.is(sumsOf(second), sumsOf(path.join(folder, "first")));
});

test.serial("a version that is missing, malformed or lower is refused, and so are changes", async (t) => {
  const copy = path.join(folder, "second");
  for (const words of [[], ["1"], ["v1.0.0"]])
    t.regex(
      (await release(copy, ...words)).stderr,
      /^Usage: npm run release -- <version>, such as 1\.0\.0\n$/,
    );
  t.is((await release(copy, "0.0.1")).stderr, `The version must be higher than ${VERSION}.\n`);
  writeFileSync(path.join(copy, "server/other.ts"), "");
  const { code, stderr } = await release(copy, VERSION);
  t.deepEqual([code, stderr], [1, "Commit or discard your changes first: server/other.ts\n"]);
});
