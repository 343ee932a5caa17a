// Packs the TypeScript client as client/client.tgz, which servers offer at /client.tgz. `npm ci` in a clone and `npm pack`
// run it, not as a `prepare` script: npm warns about packages that have one. Without the development dependencies there is no
// compiler, and nothing is packed.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");

if (existsSync(path.join(ROOT, "node_modules/.bin/tsc"))) {
  const folder = mkdtempSync(path.join(ROOT, "client/.packed-"));
  try {
    // What an `npm pack` around it was told, such as --dry-run, is not meant for this package.
    const options = ["--pack-destination", folder, "--no-dry-run", "--no-json"];
    execFileSync("npm", ["pack", "--silent", ...options], {
      cwd: path.join(ROOT, "client"),
      stdio: ["ignore", "ignore", "inherit"],
    });
    const [name] = readdirSync(folder);
    renameSync(path.join(folder, String(name)), path.join(ROOT, "client/client.tgz"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
