export type ImageHeader = { type: "png" | "jpeg"; width: number; height: number };

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
// The first chunk, after its length and name, begins with the dimensions (PNG §11.2.2).
const PNG_WIDTH_AT = 16;

/** Reads the dimensions that an image claims, without decoding it. Returns undefined if it is no PNG or JPEG. */
export function readImageHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes.subarray(0, PNG.length).equals(PNG) && bytes.length >= PNG_WIDTH_AT + 8) {
    const [width, height] = [bytes.readUInt32BE(PNG_WIDTH_AT), bytes.readUInt32BE(PNG_WIDTH_AT + 4)];
    return { type: "png", width, height };
  }
  return readJpegHeader(bytes);
}

const MARKER = 0xff;
const START_OF_IMAGE = 0xd8;

/** Finds the frame header behind the other segments of a JPEG (ITU-T T.81 §B.2.2). */
function readJpegHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes[0] !== MARKER || bytes[1] !== START_OF_IMAGE) return undefined;
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === MARKER; ) {
    const code = bytes[at + 1] as number;
    if (isFrame(code))
      return { type: "jpeg", height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    // A marker may be preceded by fill bytes.
    at += code === MARKER ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}

/** Codes from 0xC0 to 0xCF, without those for tables and arithmetic conditioning. */
function isFrame(code: number): boolean {
  return code >= 0xc0 && code <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(code);
}
