// Builds what the npm package contains, in dist/: JavaScript with source maps, and the files that it reads. `npm pack`
// runs it; `npm run check` checks the types.
import { execFileSync } from "node:child_process";
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const DIST = path.join(ROOT, "dist");
// Pages of the documentation also come from the root.
const FILES = ["{server,adapters,resources,docs}/**/*", "client/client.tgz", "SECURITY.md", "package.json"];
// Those that describe the sources.
const EXCLUDED = ["{server,adapters,resources}/**/README.md", "docs/images"];
const SOURCE = /\.ts$/;
// `tsc` renames what is imported, but not the files that threads and processes start with.
const STARTED_FILE = /new URL\("([^"]+)\.ts", import\.meta\.url\)/g;

rmSync(DIST, { recursive: true, force: true });
execFileSync(process.execPath, [path.join(import.meta.dirname, "client.js")], { stdio: "inherit" });
execFileSync(path.join(ROOT, "node_modules/.bin/tsc"), ["-p", import.meta.dirname], { stdio: "inherit" });
for (const entry of globSync(FILES, { cwd: ROOT, exclude: EXCLUDED, withFileTypes: true })) {
  const file = path.relative(ROOT, path.join(entry.parentPath, entry.name));
  if (entry.isFile() && !SOURCE.test(file)) cpSync(path.join(ROOT, file), path.join(DIST, file));
}
for (const file of globSync("**/*.js", { cwd: DIST })) {
  const built = path.join(DIST, file);
  const code = readFileSync(built, "utf8");
  const renamed = code.replace(STARTED_FILE, 'new URL("$1.js", import.meta.url)');
  if (renamed !== code) writeFileSync(built, renamed);
}
