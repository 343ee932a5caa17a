import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Exporter, TelemetrySettings } from "../settings/telemetry-settings.ts";
import { VERSION } from "../version.ts";
import { createTracing } from "./spans.ts";
import type { Telemetry } from "./tracing.ts";

/** Starts to send traces. The exporter reads its own settings from the environment. */
export function startOpenTelemetry(settings: TelemetrySettings): Telemetry {
  const tracer = startTracer(settings);
  const contexts = new AsyncLocalStorageContextManager().enable();
  return {
    tracing: createTracing(tracer.getTracer("linkgate", VERSION), contexts),
    async stop() {
      // A collector that can't be reached must not fail the shutdown.
      await tracer.shutdown().catch(() => {});
      contexts.disable();
    },
  };
}

/** Returns what identifies this process: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win. */
function describeProcess(): Resource {
  const own = resourceFromAttributes({ "service.name": "linkgate", "service.version": VERSION });
  const detectors = [serviceInstanceIdDetector, envDetector];
  return defaultResource().merge(own).merge(detectResources({ detectors }));
}

function startTracer({ exporter, batch, isParentBased, sampleRatio }: TelemetrySettings): TracerProvider {
  const root: Sampler = new TraceIdRatioBasedSampler(sampleRatio);
  return new TracerProvider({
    resource: describeProcess(),
    sampler: isParentBased ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [new BatchSpanProcessor({ exporter: spanExporter(exporter), ...batch })],
  });
}

function spanExporter(exporter: Exporter): SpanExporter {
  if (exporter === "console") return new ConsoleSpanExporter();
  return exporter === "http/json" ? new JsonTraceExporter() : new OTLPTraceExporter();
}
