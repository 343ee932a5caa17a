import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "../program.ts";

export function debianVersion(name: string): string | undefined {
  const format = `\${db:Status-Status} \${source:Upstream-Version}`;
  const { stdout } = spawnSync("dpkg-query", ["--show", "--showformat", format, name], { encoding: "utf8" });
  // Debian adds suffixes such as "+ds" if it left files out.
  return /^installed ([\d.]+)/.exec(stdout ?? "")?.[1];
}

export function npmVersion(name: string): string {
  const manifest = readFileSync(path.join(ROOT, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
