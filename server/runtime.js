// Runs before everything else, in plain JavaScript: an older Node can't read TypeScript.
import module from "node:module";
import { fileURLToPath } from "node:url";
import { isNodeSupported, OLDEST_NODE } from "./node-version.js";

if (!isNodeSupported()) {
  console.error(`linkgate needs Node ${OLDEST_NODE} or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}

// Caches compiled code, which halves the start-up time of a command. The cache lies in node_modules: a user who can
// write there could change the code itself. If the folder is read-only, nothing is cached.
module.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/linkgate", import.meta.url)));
