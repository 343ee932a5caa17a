import { execFile } from "node:child_process";
import { findPackageJSON } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { invalidField } from "../../../resources/http/validate.ts";
import { createTurns } from "../../../resources/turns.ts";
import { LOGO_FILE_MAX } from "../../http/request-body.ts";
import { readImageHeader } from "./image-header.ts";

const SIDE_MAX = 4096;
// The largest images take two seconds of a processor, which others may use as well.
const TIME_MAX_MS = 30_000;
// More than a logo of 256 × 256 pixels, even without compression.
const LOGO_MAX = 512 * 1024;
const HEAP_MAX_MB = 512;

const FIELD = "logo";
const NOT_AN_IMAGE = "must be a PNG or JPEG image";
const SVG = "must be a PNG or JPEG image. SVG isn’t accepted, because it can contain scripts";
const BROKEN = "must be a complete PNG or JPEG image. This one is damaged, or contains something unusual";

const DECODER = new URL("decoder.ts", import.meta.url);
const READABLE = [
  new URL(".", DECODER),
  new URL("../../../package.json", DECODER),
  // An npm client may have installed these beside linkgate's own folder.
  ...["jpeg-js", "pngjs"].map((name) => new URL("./", pathToFileURL(String(findPackageJSON(name, DECODER))))),
];

// Each takes the memory of an image.
const inTurn = createTurns({ pauses: false });
const ALL = "all organizations";

/** Decodes an uploaded image and encodes it as a square PNG of at most 256 pixels a side. Throws Problem 422. */
export async function createLogo(file: Buffer): Promise<Buffer> {
  if (file.length > LOGO_FILE_MAX) throw invalidField(FIELD, "must be at most 512 KB");
  const header = readImageHeader(file);
  if (!header) throw invalidField(FIELD, isMarkup(file) ? SVG : NOT_AN_IMAGE);
  const { width, height } = header;
  if (width === 0 || height === 0) throw invalidField(FIELD, BROKEN);
  if (Math.max(width, height) > SIDE_MAX) {
    const message = `must be at most ${SIDE_MAX} × ${SIDE_MAX} pixels. This image has ${width} × ${height}`;
    throw invalidField(FIELD, message);
  }
  const logo = await inTurn(ALL, () => decode(file));
  if (!logo) throw invalidField(FIELD, BROKEN);
  return logo;
}

function isMarkup(file: Buffer): boolean {
  return /^(\xef\xbb\xbf)?\s*</.test(file.toString("latin1", 0, 1024));
}

/**
 * In a process of its own, which can't open files or start programs and knows no settings. Its time is limited, and its
 * memory is free again afterwards. Resolves to undefined if it failed.
 */
function decode(file: Buffer): Promise<Buffer | undefined> {
  const readable = READABLE.map((url) => `--allow-fs-read=${fileURLToPath(url)}`);
  const options = ["--permission", ...readable, `--max-old-space-size=${HEAP_MAX_MB}`];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...options, fileURLToPath(DECODER)],
      { encoding: "buffer", env: {}, timeout: TIME_MAX_MS, killSignal: "SIGKILL", maxBuffer: LOGO_MAX },
      (error, logo) => resolve(error ? undefined : logo),
    );
    // A decoder that has failed reads no further.
    child.stdin?.on("error", () => {}).end(file);
  });
}
