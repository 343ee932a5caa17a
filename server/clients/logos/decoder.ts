// Runs in a process of its own: turns the image on its standard input into a logo on its standard output.
import { buffer } from "node:stream/consumers";
import { inflateSync } from "node:zlib";
import jpeg from "jpeg-js";
import { PNG } from "pngjs";
import { readImageHeader } from "./image-header.ts";
import { type Pixels, shrinkToSquare } from "./shrink.ts";

/** In pixels. */
const LOGO_SIDE = 256;
// What the largest image takes in the decoder, with all its colors at full resolution.
const JPEG_LIMITS = { maxResolutionInMP: 17, maxMemoryUsageInMB: 512 };

function decode(bytes: Buffer): Pixels {
  if (readImageHeader(bytes)?.type === "jpeg")
    return jpeg.decode(bytes, { ...JPEG_LIMITS, tolerantDecoding: false });
  checkPixels(bytes);
  return PNG.sync.read(bytes);
}

// Length, name and checksum of a chunk (PNG §5.3).
const CHUNK_FRAME = 12;
const SIGNATURE = 8;
// For each pixel, four channels of 16 bits; interlaced rows begin with a byte each, too.
const BYTES_PER_PIXEL = 8;
const BYTES_PER_ROW = 16;

// Samples of a pixel by color type (PNG §11.2.1), and where the header says how the pixels are stored.
const CHANNELS: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const [DEPTH_AT, COLOR_TYPE_AT, INTERLACE_AT] = [24, 25, 28];

/**
 * Throws if the pixels take more or less space than the dimensions say. pngjs inflates all of an interlaced image, and
 * fills up another one with what its memory contains.
 */
function checkPixels(bytes: Buffer): void {
  const parts: Buffer[] = [];
  for (let at = SIGNATURE; at + CHUNK_FRAME <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    if (bytes.toString("latin1", at + 4, at + 8) === "IDAT")
      parts.push(bytes.subarray(at + 8, at + 8 + length));
    at += CHUNK_FRAME + length;
  }
  const { width = 0, height = 0 } = readImageHeader(bytes) ?? {};
  const maxOutputLength = width * height * BYTES_PER_PIXEL + (width + height) * BYTES_PER_ROW;
  const { length } = inflateSync(Buffer.concat(parts), { maxOutputLength });
  const bitsPerPixel = bytes.readUInt8(DEPTH_AT) * (CHANNELS[bytes.readUInt8(COLOR_TYPE_AT)] ?? 0);
  const expected = height * (1 + Math.ceil((width * bitsPerPixel) / 8));
  if (bytes.readUInt8(INTERLACE_AT) === 0 && length < expected) throw new Error("there are too few pixels");
}

const image = await buffer(process.stdin);
const { width, height, data } = shrinkToSquare(decode(image), LOGO_SIDE);
const logo = new PNG({ width, height });
data.copy(logo.data);
process.stdout.write(PNG.sync.write(logo));
