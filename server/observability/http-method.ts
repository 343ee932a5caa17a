// Only what is a method becomes a name; clients can send any token.
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Returns a method as the name of a span and as its attribute, by the semantic conventions of OpenTelemetry. */
export function methodOf(method: string): { name: string; attribute: string } {
  return METHODS.has(method) ? { name: method, attribute: method } : { name: "HTTP", attribute: "_OTHER" };
}
