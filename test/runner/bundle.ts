import { createHash } from "node:crypto";
import fs, { globSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { OutputChunk, Plugin } from "rolldown";
import { type Import, importsOf } from "./imports.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const CACHE = path.join(ROOT, "node_modules/.cache/linkgate-tests");
const PRODUCT = ["server", "adapters", "resources", "certification/src"];
const SOURCES = `{${PRODUCT}}/**/*.{ts,js}`;
const INPUTS = [SOURCES, "{package,package-lock}.json", "test/runner/bundle.ts"];
// The product imports files of this package by names that it computes.
const PRIVATE = "node_modules/oidc-provider/lib/**/*.js";
// What the tests start as a program.
const PROGRAMS = ["server/main.ts", "server/cli/index.ts"];
// Native packages, and drivers that knex would load for other databases.
const EXTERNAL =
  /^(better-sqlite3|@node-rs\/argon2|ava|mariadb.*|mysql|oracledb|pg-native|pg-query-stream|sqlite3|tedious)$/;
// What fewer entries need stays in files of its own, which only they load.
const MIN_ENTRIES = 3;
const UNUSED_MS = 24 * 60 * 60 * 1000;

const MAP = "map.json";

type Entries = { files: string[]; packages: string[]; withNames: string[] };

/**
 * Bundles the product with its packages: a thread or program then loads a tenth of the files, in half of the time. Returns a file that
 * maps the URLs of sources to those of the bundle. If the cache has no bundle of these sources, builds it, or skips it.
 */
export async function bundleProduct(options: {
  unlessCached: "build" | "skip";
}): Promise<string | undefined> {
  const entries = entriesOf();
  const folder = path.join(CACHE, hashOf(entries));
  const map = path.join(folder, MAP);
  if (fs.existsSync(map)) fs.utimesSync(map, new Date(), new Date());
  else if (options.unlessCached === "skip") return undefined;
  else {
    removeUnused();
    await build(entries, folder);
  }
  return map;
}

/** What the tests and the client import or start: files of the product, and packages that the product imports, too. */
function entriesOf(): Entries {
  const imported = importsIn("{test,client}/**/*.ts");
  const used = new Set(importsIn(SOURCES).map(({ specifier }) => specifier));
  const files = imported.filter(
    ({ specifier }) =>
      PRODUCT.some((folder) => specifier.startsWith(`${folder}/`)) && /\.[jt]s$/.test(specifier),
  );
  const packages = imported.filter(
    ({ specifier, isFile }) => !isFile && used.has(specifier) && !EXTERNAL.test(specifier),
  );
  return {
    files: [...PROGRAMS, ...unique(files)],
    packages: unique(packages),
    withNames: unique(packages.filter(({ hasNames }) => hasNames)),
  };
}

function importsIn(pattern: string): Import[] {
  const files = globSync(pattern, { cwd: ROOT, exclude: ["test/bench/**", "client/node_modules/**"] });
  return files.flatMap((file) => importsOf(ROOT, file));
}

function unique(imports: Import[]): string[] {
  return [...new Set(imports.map(({ specifier }) => specifier))].toSorted();
}

function hashOf(entries: Entries): string {
  const hash = createHash("sha256").update(JSON.stringify([ROOT, process.version, entries]));
  for (const file of globSync(INPUTS, { cwd: ROOT }).toSorted())
    hash.update(`\0${file}\0`).update(fs.readFileSync(path.join(ROOT, file)));
  return hash.digest("hex").slice(0, 16);
}

async function build({ files, packages, withNames }: Entries, folder: string): Promise<void> {
  const { rolldown } = await import("rolldown");
  const named = [...files, ...globSync(PRIVATE, { cwd: ROOT })].map((file) => [
    file.replace(/\.[jt]s$/, ""),
    path.join(ROOT, file),
  ]);
  const bundle = await rolldown({
    input: Object.fromEntries([...named, ...packages.map((name) => [`packages/${name}`, name])]),
    cwd: ROOT,
    platform: "node",
    external: (id) => EXTERNAL.test(id),
    plugins: [keepUrls],
    logLevel: "silent",
  });
  fs.mkdirSync(CACHE, { recursive: true });
  const building = fs.mkdtempSync(path.join(CACHE, "building-"));
  // Programs of other users load it, too.
  fs.chmodSync(building, 0o755);
  const { output } = await bundle.write({
    dir: building,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    // Parsing the maps would take each worker longer than the rest: only the report of a failure reads them.
    sourcemap: "hidden",
    // The names of oidc-provider's steps identify them.
    keepNames: true,
    codeSplitting: {
      groups: [
        { name: "oidc-provider", test: /node_modules\/oidc-provider\// },
        { name: "packages", test: /node_modules\//, minShareCount: MIN_ENTRIES },
        { name: "product", test: new RegExp(`/(${PRODUCT.join("|")})/`), minShareCount: MIN_ENTRIES },
      ],
    },
  });
  await bundle.close();
  // A CommonJS package becomes a module without names. Tests that need them have an instance of their own.
  const isUsable = ({ name, exports }: OutputChunk) =>
    exports.join() !== "default" || !withNames.some((specifier) => name === `packages/${specifier}`);
  const entries = output.filter((file) => file.type === "chunk").filter(isUsable);
  const pairs = entries.flatMap(({ facadeModuleId, fileName }) =>
    facadeModuleId
      ? [[pathToFileURL(facadeModuleId).href, pathToFileURL(path.join(folder, fileName)).href]]
      : [],
  );
  // Otherwise Node reads each file to see that it is a module.
  fs.writeFileSync(path.join(building, "package.json"), JSON.stringify({ type: "module" }));
  fs.writeFileSync(path.join(building, MAP), JSON.stringify(Object.fromEntries(pairs)));
  try {
    fs.renameSync(building, folder);
  } catch {
    // Another run has built the same.
    fs.rmSync(building, { recursive: true });
  }
}

/** Sources read files beside them, and start threads from them. */
const keepUrls: Plugin = {
  name: "keep-urls",
  transform(code, id) {
    if (id.includes("/node_modules/") || !code.includes("import.meta.")) return undefined;
    const kept = code
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", JSON.stringify(path.dirname(id)));
    return { code: kept, map: null };
  },
};

function removeUnused(): void {
  for (const folder of globSync(path.join(CACHE, "*"))) {
    const used = fs.statSync(path.join(folder, MAP), { throwIfNoEntry: false }) ?? fs.statSync(folder);
    if (used.mtimeMs < Date.now() - UNUSED_MS) fs.rmSync(folder, { recursive: true, force: true });
  }
}
