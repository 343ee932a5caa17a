import type { IncomingMessage, RequestListener } from "node:http";

const ABSOLUTE = /^https?:\/\/([^/?#]*)(?=[/?])/i;
// A path of one segment, such as that of a short link.
const SLUG = /^\/[^/?]*(?=\?|$)/;
// RFC 3986 §2.3: letters, digits and `-._~`.
const ENCODED_UNRESERVED = /%(?:2[de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi;

/** Returns a listener that sees the URLs of short links in one notation. Other paths are matched as they are. */
export function normalizeTargets(listener: RequestListener): RequestListener {
  return function listen(request, response) {
    const { url = "" } = request;
    if (!url.startsWith("/") || url.includes("%")) request.url = normalized(request);
    listener(request, response);
  };
}

/** Returns whether a URL is absolute and names another host than `Host`. */
export function isForOtherHost({ url = "" }: IncomingMessage): boolean {
  return ABSOLUTE.test(url);
}

/**
 * Removes the origin of an absolute URL (RFC 9112 §3.2.2), unless `Host` contradicts it, and decodes unreserved
 * characters of a slug (RFC 3986 §6.2.2.2).
 */
function normalized({ url = "", headers }: IncomingMessage): string {
  const [origin = "", host] = ABSOLUTE.exec(url) ?? [];
  const isOwn = host?.toLowerCase() === headers.host?.toLowerCase();
  const target = isOwn ? url.slice(origin.length).replace(/^(?!\/)/, "/") : url;
  const [path = ""] = SLUG.exec(target) ?? [];
  return path.replaceAll(ENCODED_UNRESERVED, decodeURIComponent) + target.slice(path.length);
}
