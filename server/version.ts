import manifest from "../package.json" with { type: "json" };

export const VERSION: string = manifest.version;

/** npm doesn't install them by itself. */
export const OPTIONAL_PACKAGES: readonly string[] = Object.keys(manifest.peerDependencies);
