import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import { encode, renderSVG } from "uqr";
import { z } from "zod";
import { field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import type { FieldErrors } from "../forms.ts";

// ISO/IEC 18004 requires a quiet zone of four modules. Error correction level M tolerates 15% of damage.
const RENDERING = { border: 4, ecc: "M" } as const;
// Enough for the longest short URL with one pixel per module.
const SIZE_MIN = 128;
const SIZE_MAX = 2048;
const DEFAULT_SIZE = 512;
const DEFAULT_COLOR = "#000000";
// Scanners need the contrast. WCAG 2 asks the same of text.
const CONTRAST_MIN = 4.5;

const sizeError = { error: `must be a whole number from ${SIZE_MIN} to ${SIZE_MAX}` };

export const qrQuery = z.object({
  size: z.int(sizeError).min(SIZE_MIN, sizeError).max(SIZE_MAX, sizeError).optional(),
  color: z
    .string()
    .regex(/^#?[\da-f]{6}$/i, { error: "must be a color such as 1a2b3c", abort: true })
    .transform((text) => `#${text.slice(-6).toLowerCase()}`)
    .refine((color) => contrastToWhite(color) >= CONTRAST_MIN, {
      error: ({ input }) =>
        `must be darker: its contrast to white is ${Math.floor(contrastToWhite(String(input)) * 10) / 10}:1, and scanners need at least ${CONTRAST_MIN}:1`,
    })
    .default(DEFAULT_COLOR),
  download: z.string().optional(),
});

type QrOptions = Pick<z.output<typeof qrQuery>, "size" | "color">;

/** Image formats of QR codes: their media type, and how one is rendered. */
export const QR_FORMATS = {
  svg: { type: "image/svg+xml", render: renderSvg },
  png: { type: "image/png", render: renderPng },
};

export type QrFormat = keyof typeof QR_FORMATS;

async function renderSvg(text: string, { size, color }: QrOptions): Promise<string> {
  const svg = renderSVG(text, { ...RENDERING, blackColor: color });
  return size === undefined ? svg : svg.replace("<svg ", `<svg width="${size}" height="${size}" `);
}

/** Renders an image of exactly the size. What whole pixels per module leave over becomes part of the quiet zone. */
async function renderPng(text: string, { size = DEFAULT_SIZE, color }: QrOptions): Promise<Buffer> {
  const { data: modules } = encode(text, RENDERING);
  const scale = Math.floor(size / modules.length);
  const margin = Math.floor((size - scale * modules.length) / 2);
  // One byte for the filter, which is none, and one bit per pixel.
  const lineLength = 1 + Math.ceil(size / 8);
  const lines = Buffer.alloc(size * lineLength);
  for (const [row, isDark] of modules.entries()) {
    const line = Buffer.alloc(lineLength);
    for (let x = margin; x < margin + scale * modules.length; x++) {
      if (!isDark[Math.floor((x - margin) / scale)]) continue;
      const at = 1 + (x >> 3);
      line.writeUInt8(line.readUInt8(at) | (0x80 >> (x & 7)), at);
    }
    for (let y = margin + row * scale; y < margin + (row + 1) * scale; y++) line.copy(lines, y * lineLength);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([1, 3], 8); // one bit per pixel, which is an index of the palette
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk("IHDR", header),
    pngChunk("PLTE", Buffer.from(`ffffff${color.slice(1)}`, "hex")),
    pngChunk("IDAT", await promisify(deflate)(lines)),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

const PNG_SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");

/** RFC 2083 §3.2: length, type, data and checksum. */
function pngChunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type), data]);
  const chunk = Buffer.alloc(content.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  content.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(content), content.length + 4);
  return chunk;
}

/** WCAG 2: the contrast ratio, from the relative luminance of a color. */
function contrastToWhite(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...Buffer.from(color.slice(1), "hex")].map((byte) => {
    const value = byte / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
}

type Code = { path: string; shownUrl: string; color?: string | undefined };

/** Renders the QR code of a link, with its downloads in the best quality. `path` is the page of the link. */
export function qrCode({ path, shownUrl, color }: Code, more: Html): Html {
  const hrefOf = (format: QrFormat, query: object) => pathWith(`${path}/qr.${format}`, { ...query, color });
  const download = (format: QrFormat, text: string, size?: string) =>
    html`<a class="button quiet small" href="${hrefOf(format, { size, download: "1" })}" download><span class="visually-hidden">Download QR code as </span>${text}</a>`;
  return html`<figure class="qr"><img src="${hrefOf("svg", {})}" alt="QR code for ${shownUrl}" width="168" height="168">
<figcaption class="actions">${download("svg", "SVG")}${download("png", `PNG, ${SIZE_MAX.toLocaleString("en")} px`, String(SIZE_MAX))}${more}</figcaption></figure>`;
}

/** Renders the page that chooses the color of a QR code. A code in a rejected color isn't shown. */
export function qrPage(code: Code, typed: string | undefined, errors: FieldErrors): Html {
  const { path } = code;
  return html`<div class="panel beside"><form action="${path}/qr" class="stack" data-filter>
${field({ name: "color", label: "Color", type: "color", value: typed ? `#${typed.replace("#", "")}` : DEFAULT_COLOR, error: errors.color, hint: "On white, as scanners expect." })}
<div class="actions"><button type="submit" class="quiet" data-apply>Show</button>${linkButton(path, "Back to link", "quiet")}</div></form>
<div data-live>${Object.keys(errors).length === 0 && qrCode(code, html``)}</div></div>`;
}
