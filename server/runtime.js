// Runs before anything else, in plain JavaScript: an older Node could not even read the rest.
const OLDEST = 24;

if (Number(process.versions.node.split(".")[0]) < OLDEST) {
  console.error(`linkgate needs Node ${OLDEST} or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}
