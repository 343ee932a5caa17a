/** The trace and the span of a caller, and the header that passes them on. */
export const TRACE = "0af7651916cd43dd8448eb211c80319c";
export const PARENT = "b7ad6b7169203331";
export const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;

/** Returns the settings of a server that sends its spans to a collector without delay. */
export function tracedBy(collector: { url: string }): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
}
