import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, copyFileSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { outputOf, Program } from "../program.ts";

export const HAS_BUILDAH = existsSync("/usr/bin/buildah") && process.getuid?.() === 0;

const NONROOT = 65532;
// In the first stage: how this machine reaches its registry.
const NPM_SETTINGS = "/etc/npmrc";
const BASE_LIBRARIES = ["libc6", "libgcc-s1", "libstdc++6"];

type Config = {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Volumes: Record<string, object>;
  Healthcheck: { Test: string[] };
};

/**
 * Builds images without a registry: the base images are made of what this machine has, Node and the libraries of Debian
 * that it needs.
 */
export function createBuilder(folder: string) {
  const storage = ["--storage-driver", "vfs", "--root", `${folder}/storage`, "--runroot", `${folder}/run`];
  const buildah = (...args: string[]) => outputOf("buildah", [...storage, ...args]);

  async function createBase(name: string, rootfs: string, ...environment: string[]): Promise<void> {
    const container = (await buildah("from", "scratch")).trim();
    await buildah("copy", "--quiet", container, rootfs, "/");
    await buildah("config", ...environment.flatMap((variable) => ["--env", variable]), container);
    await buildah("commit", "--quiet", container, name);
    await buildah("rm", container);
  }

  return {
    /** The image of the first stage, whose programs come from this machine, and that of the second. */
    async createBases(build: string, runtime: string): Promise<void> {
      const rootfs = path.join(folder, "build");
      for (const name of ["tmp", "root", "etc", "proc", "dev", "usr", "var/tmp"])
        mkdirSync(path.join(rootfs, name), { recursive: true });
      for (const name of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${name}`, path.join(rootfs, name));
      const npm = `npm_config_userconfig=${NPM_SETTINGS}`;
      await createBase(build, rootfs, "PATH=/usr/local/bin:/usr/bin:/bin", npm);
      const base = createRuntimeBase(path.join(folder, "runtime"));
      await createBase(runtime, base, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    },

    async build(context: string): Promise<{ config: Config; rootfs: string }> {
      const mounts = [["/usr"], ["/etc/ssl"], [path.join(homedir(), ".npmrc"), NPM_SETTINGS]]
        .filter(([from = ""]) => existsSync(from))
        .flatMap(([from, to = from]) => ["--volume", `${from}:${to}:ro`]);
      const options = ["--isolation", "chroot", "--format", "docker", "--pull-never", "--tag", "linkgate"];
      await buildah("build", ...options, ...mounts, context);
      const inspected = JSON.parse(await buildah("inspect", "--type", "image", "linkgate"));
      const container = (await buildah("from", "--pull-never", "linkgate")).trim();
      return { config: inspected.Docker.config, rootfs: (await buildah("mount", container)).trim() };
    },
  };
}

function createRuntimeBase(base: string): string {
  for (const name of ["nodejs/bin", "etc/ssl", "tmp", "proc", "dev", "usr/local/bin"])
    mkdirSync(path.join(base, name), { recursive: true });
  cpSync(process.execPath, path.join(base, "nodejs/bin/node"));
  const listed = execFileSync("dpkg", ["--listfiles", ...BASE_LIBRARIES], { encoding: "utf8" }).split("\n");
  for (const file of new Set(listed.filter((name) => /\.so(\.[\d.]+)?$/.test(name)))) {
    if (!existsSync(file)) continue;
    mkdirSync(path.join(base, path.dirname(file)), { recursive: true });
    copyFileSync(file, path.join(base, file));
  }
  cpSync("/etc/ssl/certs", path.join(base, "etc/ssl/certs"), { recursive: true, dereference: true });
  const nonroot = `nonroot:x:${NONROOT}:`;
  writeFileSync(path.join(base, "etc/passwd"), `${nonroot}${NONROOT}::/home/nonroot:/sbin/nologin\n`);
  writeFileSync(path.join(base, "etc/group"), `${nonroot}\n`);
  return base;
}

/** Starts programs in an image as an engine would: as its user, on a read-only root, with a volume at `/data`. */
export function createContainer(rootfs: string, volume: string, environment: string[]) {
  mkdirSync(volume, { mode: 0o700 });
  chownSync(volume, NONROOT, NONROOT);
  const mounts = `
    mount --bind '${rootfs}' '${rootfs}' && mount -o remount,bind,ro '${rootfs}'
    mount -t proc proc '${rootfs}/proc' && mount --bind /dev '${rootfs}/dev'
    mount -t tmpfs -o mode=1777 tmpfs '${rootfs}/tmp' && mount --bind '${volume}' '${rootfs}/data'`;
  return (command: string[], settings: Record<string, string> = {}) => {
    const variables = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    const chroot = ["/usr/sbin/chroot", `--userspec=${NONROOT}:${NONROOT}`, rootfs, ...command];
    const shell = ["sh", "-euc", `${mounts}\nexec env -i "$@"`, "sh", ...environment, ...variables];
    return new Program("unshare", ["--mount", ...shell, ...chroot], { cwd: "/" });
  };
}

export function sizeOf(folder: string): number {
  return Number(spawnSync("du", ["-s", "-B1", folder], { encoding: "utf8" }).stdout.split("\t")[0]);
}
