// Plain JavaScript: an older Node can't read TypeScript.

/** The oldest major version of Node that runs linkgate. */
export const OLDEST_NODE = 24;

/** Returns whether the Node that runs this process is recent enough. */
export function isNodeSupported() {
  return Number(process.versions.node.split(".")[0]) >= OLDEST_NODE;
}
