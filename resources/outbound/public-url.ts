/**
 * Returns whether a document or its keys may be at a URL. They are fetched later, from public addresses only; this
 * rejects what can't be one without looking up its host. Outside production, the local addresses would be exempt.
 */
export function isPublicUrl(text: unknown): boolean {
  const url = typeof text === "string" ? URL.parse(text) : undefined;
  if (url?.protocol !== "https:" || url.pathname === "/") return false;
  const host = url.hostname.replace(/\.$/, "");
  const isIpAddress = host.startsWith("[") || /(^|\.)\d+$/.test(host);
  const isLocal = !host.includes(".") || host.endsWith(".localhost") || host.endsWith(".local");
  return !isIpAddress && !isLocal;
}
