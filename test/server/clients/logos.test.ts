import test from "ava";
import jpeg from "jpeg-js";
import { PNG } from "pngjs";
import { isProblem } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { pixels, png, pngOf, uploadLogo } from "../../harness/clients/logos.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { base, owner } = await createTeam(service);
test.after.always(() => service.close());

type Branding = { logo_uri: string | null };

const path = `${base}/client/branding`;
const look = async () => (await owner.api.get<Branding>(path)).body;
const upload = (file: Buffer) => uploadLogo<Branding>(owner, `${path}/logo`, file);

async function fetchLogo(url: string | null): Promise<Buffer> {
  const response = await fetch(url ?? "");
  return Buffer.from(await response.arrayBuffer());
}

test.serial(
  "a small logo keeps its size, and what surrounds a transparent image stays transparent",
  async (t) => {
    const image = PNG.sync.read(await fetchLogo((await upload(png(3, 8, [10, 20, 30, 128]))).body.logo_uri));
    t.deepEqual([image.width, image.height], [8, 8]);
    t.deepEqual(
      [...image.data.subarray(0, 24)],
      [...Buffer.alloc(8), 10, 20, 30, 128, 10, 20, 30, 128, 10, 20, 30, 128, 0, 0, 0, 0],
    );
  },
);

const ROW = 1 + 8 * 4;
const EXIF = Buffer.from("Exif\0\0secret place", "latin1");
const FRAME = Buffer.alloc(26);

const ACCEPTED: Record<string, () => Buffer> = {
  "a JPEG": () => jpeg.encode({ width: 300, height: 200, data: Buffer.alloc(300 * 200 * 4, 90) }, 80).data,
  "an interlaced PNG": () => pngOf({ width: 8, height: 8, interlaced: true }, [["IDAT", pixels(271)]]),
  "an animated PNG": () =>
    pngOf({ width: 8, height: 8 }, [
      ["acTL", Buffer.from([0, 0, 0, 1, 0, 0, 0, 0])],
      ["fcTL", FRAME],
      ["IDAT", pixels(8 * ROW)],
    ]),
  "a PNG with metadata": () =>
    pngOf({ width: 8, height: 8 }, [
      ["eXIf", EXIF],
      ["tEXt", EXIF],
      ["IDAT", pixels(8 * ROW)],
    ]),
  "a PNG of 4096 × 4096 pixels": () => png(4096, 4096),
  "a JPEG of 4096 × 4096 pixels": () =>
    jpeg.encode({ width: 4096, height: 4096, data: Buffer.alloc(4096 * 4096 * 4, 90) }, 20).data,
};

for (const [what, file] of Object.entries(ACCEPTED)) {
  test.serial(`${what} becomes a logo`, async (t) => {
    const { status, body, text } = await upload(file());
    t.is(status, 200, text);
    const logo = await fetchLogo(body.logo_uri);
    const { width, height } = PNG.sync.read(logo);
    t.is(width, height);
    t.true(width <= 256);
    t.false(logo.includes("secret place"));
  });
}

const bomb = (interlaced: boolean): Buffer =>
  pngOf({ width: 8, height: 8, interlaced }, [["IDAT", pixels(300 * 2 ** 20)]]);
const header = (width: number, height: number) => pngOf({ width, height }, [["IDAT", pixels(1)]]);
const text = (content: string) => Buffer.from(content, "latin1");
const BROKEN = /must be a complete PNG or JPEG image/;
const TOO_WIDE = /must be at most 4096 × 4096 pixels/;

const REJECTED: Record<string, [file: () => Buffer, message: RegExp]> = {
  "an interlaced PNG that inflates to 300 MB": [() => bomb(true), BROKEN],
  "a PNG that inflates to 300 MB": [() => bomb(false), BROKEN],
  "a PNG that claims 65535 × 65535 pixels": [() => header(65535, 65535), TOO_WIDE],
  "a PNG that claims 4097 × 1 pixels": [() => header(4097, 1), TOO_WIDE],
  "a PNG without pixels": [() => header(0, 8), BROKEN],
  "a PNG with too few pixels": [() => header(8, 8), BROKEN],
  "a PNG without its last row": [() => pngOf({ width: 8, height: 8 }, [["IDAT", pixels(7 * ROW)]]), BROKEN],
  "a truncated PNG": [() => png(300, 300).subarray(0, 150), BROKEN],
  "a PNG with a wrong checksum": [
    () => Buffer.from(png(9, 9).map((byte, at) => (at === 29 ? byte ^ 1 : byte))),
    BROKEN,
  ],
  "a PNG with a chunk that is longer than the file": [
    () => Buffer.concat([png(9, 9).subarray(0, 33), text("\x7f\xff\xff\xffIDAT")]),
    BROKEN,
  ],
  "a truncated JPEG": [() => (ACCEPTED["a JPEG"] as () => Buffer)().subarray(0, 700), BROKEN],
  "a JPEG that claims 65535 × 65535 pixels": [
    () => text("\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"),
    TOO_WIDE,
  ],
  "a JPEG without a frame": [() => text("\xff\xd8\xff\xda\x00\x02\xff\xd9"), /must be a PNG or JPEG image/],
  "an SVG": [
    () => text('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'),
    /SVG isn’t accepted/,
  ],
  "a GIF": [() => text("GIF89a\x01\x00\x01\x00\x00\x00\x00"), /must be a PNG or JPEG image/],
  "a page called an image": [() => text("<!doctype html><script>alert(1)</script>"), /must be a PNG or JPEG/],
  "an empty file": [() => Buffer.alloc(0), /must be a PNG or JPEG image/],
  "a file of more than 512 KB": [
    () => Buffer.concat([png(9, 9), Buffer.alloc(512 * 1024)]),
    /must be at most 512 KB/,
  ],
};

for (const [what, [file, message]] of Object.entries(REJECTED)) {
  test.serial(`${what} is rejected, and the logo stays`, async (t) => {
    await upload(png(9, 9));
    const before = await look();
    const reply = await upload(file());
    isProblem(t, reply, { status: 422, code: "invalid_logo", fields: ["logo"] });
    t.regex(reply.text, message);
    t.deepEqual(await look(), before);
    t.is((await fetch(before.logo_uri ?? "")).status, 200);
  });
}
