import { crc32, deflateSync } from "node:zlib";
import { PNG } from "pngjs";
import type { Colleague } from "./dashboard.ts";

/** Returns an opaque PNG of one color. */
export function png(width: number, height: number, color = [200, 30, 60, 255]): Buffer {
  const image = new PNG({ width, height });
  image.data = Buffer.alloc(width * height * 4, Buffer.from(color));
  return PNG.sync.write(image);
}

export type Chunk = [name: string, data: Buffer];

/** Returns a PNG of these chunks behind its header, without looking at them. */
export function pngOf(
  header: { width: number; height: number; interlaced?: boolean },
  chunks: Chunk[],
): Buffer {
  const { width, height, interlaced = false } = header;
  const ihdr = Buffer.alloc(13);
  ihdr.writeUInt32BE(width, 0);
  ihdr.writeUInt32BE(height, 4);
  // Eight bits per channel, with alpha.
  ihdr.set([8, 6, 0, 0, Number(interlaced)], 8);
  const all: Chunk[] = [["IHDR", ihdr], ...chunks, ["IEND", Buffer.alloc(0)]];
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...all.map(chunkOf)]);
}

function chunkOf([name, data]: Chunk): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** Returns the content of a chunk with this many bytes of pixels, all zero. */
export function pixels(bytes: number): Buffer {
  return deflateSync(Buffer.alloc(bytes), { level: 9 });
}

/** Uploads a logo as a program does. */
export function uploadLogo<Body>({ api }: Colleague, path: string, file: Buffer, type = "image/png") {
  const body = new FormData();
  body.set("logo", new File([Uint8Array.from(file)], "logo", { type }));
  return api.send<Body>("PUT", path, { body });
}
