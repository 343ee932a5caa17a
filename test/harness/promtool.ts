import { existsSync } from "node:fs";

/** The tool that checks alert rules, of the Debian package `prometheus`. */
export const PROMTOOL = "/usr/bin/promtool";
export const HAS_PROMTOOL = existsSync(PROMTOOL);
