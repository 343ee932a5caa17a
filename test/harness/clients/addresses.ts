import { postForm } from "../service.ts";

let networks = 0;

export const newAddress = () => `198.${Math.floor(++networks / 250)}.${networks % 250}.7`;

/** Signs in as a browser at an address does; returns the cookie that makes it a known device. */
export async function deviceCookie(
  { url }: { url: string },
  { username, password }: { username: string; password: string },
  address = newAddress(),
): Promise<string> {
  const from = { accept: "text/html", origin: url, "x-forwarded-for": address };
  const { headers } = await postForm(`${url}/auth/login`, { username, password }, from);
  const cookie = headers.getSetCookie().find((line) => line.startsWith("device="));
  return cookie?.split(";")[0] ?? "";
}
