// Threads and the programs that tests start load this first. Modules of the product then come from the bundle that TEST_BUNDLE names.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const SOURCES = ["server", "adapters", "resources", "certification/src"].map(
  (folder) => new URL(`../../${folder}/`, import.meta.url).href,
);
const { TEST_BUNDLE } = process.env;

if (TEST_BUNDLE) {
  const map = new Map<string, string>(Object.entries(JSON.parse(readFileSync(TEST_BUNDLE, "utf8"))));

  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      if (!context.conditions.includes("import")) return resolved;
      const bundled = map.get(resolved.url);
      if (bundled) return { url: bundled, format: "module", shortCircuit: true };
      // A second instance of a module has a state of its own.
      if (isSource(resolved.url) && !isSource(context.parentURL))
        throw new Error(`${resolved.url} is not in the bundle: import it by its literal path`);
      return resolved;
    },
  });
}

function isSource(url = ""): boolean {
  return /\.[jt]s$/.test(url) && SOURCES.some((folder) => url.startsWith(folder));
}
