import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { DASHBOARD_CSS, STYLE_CSS } from "./css/index.ts";

const BASE = "/assets/";
const [CSS, JS, SVG] = ["text/css", "text/javascript", "image/svg+xml"];
const VERSION_LENGTH = 10;

const font = readFileSync(new URL("assets/inter.woff2", import.meta.url));
const utm = read(new URL("./utm.js", import.meta.url));
const search =
  read(new URL(import.meta.resolve("minisearch"))) + read(new URL("../docs/search.js", import.meta.url));
const webauthn = new URL("../dist/bundle/index.umd.min.js", import.meta.resolve("@simplewebauthn/browser"));

// A file that loads another one names its version as well.
const FILES = {
  "style.css": { type: CSS, body: STYLE_CSS.replace(`${BASE}inter.woff2`, addressOf("inter.woff2", font)) },
  "dashboard.css": { type: CSS, body: DASHBOARD_CSS },
  "docs.css": { type: CSS, body: read(new URL("../docs/docs.css", import.meta.url)) },
  "docs.js": {
    type: JS,
    body: read(new URL("../docs/docs.js", import.meta.url)).replace(
      "./search.js",
      addressOf("search.js", search),
    ),
  },
  "search.js": { type: JS, body: search },
  "app.js": { type: JS, body: read(new URL("./app.js", import.meta.url)) },
  "shortcuts.js": { type: JS, body: read(new URL("./shortcuts.js", import.meta.url)) },
  "link-form.js": {
    type: JS,
    body: read(new URL("./link-form.js", import.meta.url)).replace("./utm.js", addressOf("utm.js", utm)),
  },
  "utm.js": { type: JS, body: utm },
  "passkeys.js": { type: JS, body: read(webauthn) + read(new URL("./passkeys.js", import.meta.url)) },
  "icon.svg": { type: SVG, body: read(new URL("./assets/icon.svg", import.meta.url)) },
  "icons.svg": { type: SVG, body: read(new URL("./assets/icons.svg", import.meta.url)) },
  "inter.woff2": { type: "font/woff2", body: font },
} satisfies Record<string, { type: string; body: string | Buffer }>;

/** A file that pages load. Its address has its version, which changes with its content. */
type Asset = { type: string; body: string | Buffer; address: string };

/** What pages load: path → file. */
export const ASSETS: ReadonlyMap<string, Asset> = new Map(
  Object.entries(FILES).map(([name, file]) => [
    BASE + name,
    { ...file, address: addressOf(name, file.body) },
  ]),
);

/** Returns the address of an asset for a page, such as `/assets/style.css?v=0123456789`. */
export function assetAddress(name: keyof typeof FILES): string {
  return ASSETS.get(BASE + name)?.address as string;
}

function addressOf(name: string, body: string | Buffer): string {
  return `${BASE}${name}?v=${hash("sha256", body, "base64url").slice(0, VERSION_LENGTH)}`;
}

function read(file: URL): string {
  return readFileSync(file, "utf8");
}
