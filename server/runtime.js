// Runs before anything else, in plain JavaScript: an older Node could not even read the rest.
import module from "node:module";
import { fileURLToPath } from "node:url";

const OLDEST = 24;

if (Number(process.versions.node.split(".")[0]) < OLDEST) {
  console.error(`linkgate needs Node ${OLDEST} or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}

// What was compiled is kept, so that a command starts in half the time; beside the packages, where whoever can write
// could as well change the code. Where nothing can be written, it starts as ever.
module.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/linkgate", import.meta.url)));
