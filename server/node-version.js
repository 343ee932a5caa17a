// Plain JavaScript: an older Node can't read TypeScript.

/** The oldest version of Node that runs linkgate. The first one that reads TypeScript without an option. */
export const OLDEST_NODE = "22.18";

/** Returns whether the Node that runs this process is recent enough. */
export function isNodeSupported() {
  return process.versions.node.localeCompare(OLDEST_NODE, "en", { numeric: true }) >= 0;
}
