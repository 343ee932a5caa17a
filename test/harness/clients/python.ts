import { spawnSync } from "node:child_process";

// The `python3` on the PATH comes first. It may have other packages than the system's own.
const INTERPRETERS = ["python3", "/usr/bin/python3"];

/** A Python of this machine that has Authlib; undefined if there is none. */
export const PYTHON = INTERPRETERS.find(
  (python) => spawnSync(python, ["-c", "import authlib, requests"]).status === 0,
);
