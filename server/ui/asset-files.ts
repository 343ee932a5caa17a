import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";

const BASE = "/assets/";
const VERSION_LENGTH = 10;

// The order within a list decides between rules of equal specificity.
const BASE_SHEETS = ["tokens", "base", "controls"];
const DASHBOARD_SHEETS = ["components", "layout", "table", "links", "analytics", "organization", "consent"];

/** The style of pages that load nothing. */
export const BASE_CSS = concatenate(BASE_SHEETS);

const [font, light, dark] = ["inter.woff2", "links-light.webp", "links-dark.webp"].map((name) =>
  readFileSync(new URL(`assets/${name}`, import.meta.url)),
) as [Buffer, Buffer, Buffer];
/** The mark of the service, which pages have in their text: as an image, it would be a document of its own to a browser. */
export const ICON = read("./assets/icon.svg");
const utm = read("../../resources/links/utm.js");
const search = read(import.meta.resolve("minisearch")) + read("../docs/search.js");
const webauthn = new URL("../dist/bundle/index.umd.min.js", import.meta.resolve("@simplewebauthn/browser"));

// A file that loads another one names its version as well.
const FILES = {
  "style.css": concatenate(["font", ...BASE_SHEETS]).replace(
    `${BASE}inter.woff2`,
    addressOf("inter.woff2", font),
  ),
  "dashboard.css": concatenate(DASHBOARD_SHEETS),
  "docs.css": read("../docs/docs.css"),
  "docs.js": read("../docs/docs.js").replace("./search.js", addressOf("search.js", search)),
  "search.js": search,
  "app.js": read("./app.js"),
  "chart-values.js": read("./chart-values.js"),
  "shortcuts.js": read("./shortcuts.js"),
  "link-form.js": read("./link-form.js").replace("../../resources/links/utm.js", addressOf("utm.js", utm)),
  "utm.js": utm,
  "passkeys.js": read(webauthn) + read("./passkeys.js"),
  "icon.svg": ICON,
  "icons.svg": read("./assets/icons.svg"),
  "inter.woff2": font,
  "links-light.webp": light,
  "links-dark.webp": dark,
} satisfies Record<string, string | Buffer>;

/** A file that pages load. Its address has its version, which changes with its content. */
type Asset = { type: string; body: string | Buffer; address: string };

/** What pages load: path → file. */
export const ASSETS: ReadonlyMap<string, Asset> = new Map(
  Object.entries(FILES).map(([name, body]) => [
    BASE + name,
    { type: path.extname(name), body, address: addressOf(name, body) },
  ]),
);

/** Returns the address of an asset for a page, such as `/assets/style.css?v=0123456789`. */
export function assetAddress(name: keyof typeof FILES): string {
  return ASSETS.get(BASE + name)?.address as string;
}

function addressOf(name: string, body: string | Buffer): string {
  return `${BASE}${name}?v=${hash("sha256", body, "base64url").slice(0, VERSION_LENGTH)}`;
}

function read(file: string | URL): string {
  return readFileSync(new URL(file, import.meta.url), "utf8");
}

function concatenate(sheets: string[]): string {
  return sheets.map((name) => read(`./css/${name}.css`)).join("\n");
}
