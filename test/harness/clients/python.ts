import { spawnSync } from "node:child_process";

// The system's own comes second: one that was installed beside it has other packages.
const INTERPRETERS = ["python3", "/usr/bin/python3"];

/** The Python of this machine that has Authlib; nothing where there is none. */
export const PYTHON = INTERPRETERS.find(
  (python) => spawnSync(python, ["-c", "import authlib, requests"]).status === 0,
);
