import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPMetricExporter as JsonMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
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
  ConsoleMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Exporter, TelemetrySettings } from "../telemetry-settings.ts";
import { VERSION } from "../version.ts";
import { createMetricProducer } from "./otlp-metrics.ts";
import { createTracing } from "./spans.ts";
import type { Telemetry } from "./tracing.ts";
import type { Metrics } from "./worker-metrics.ts";

/** Starts to send traces and metrics. The exporters read their own settings from the environment. */
export function startOpenTelemetry(
  settings: TelemetrySettings,
  readMetrics: () => Promise<Metrics>,
): Telemetry {
  const resource = describeProcess();
  const tracer = settings.traces && startTracer(settings, settings.traces, resource);
  const meter = settings.metrics && startMeter(settings, settings.metrics, resource, readMetrics);
  const contexts = new AsyncLocalStorageContextManager().enable();
  return {
    ...(tracer && { tracing: createTracing(tracer.getTracer("linkgate", VERSION), contexts) }),
    async stop() {
      // A collector that can't be reached must not fail the shutdown.
      await Promise.allSettled([tracer?.shutdown(), meter?.shutdown()]);
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

function startTracer(settings: TelemetrySettings, exporter: Exporter, resource: Resource): TracerProvider {
  const { batch, isParentBased, sampleRatio } = settings;
  const root: Sampler = new TraceIdRatioBasedSampler(sampleRatio);
  return new TracerProvider({
    resource,
    sampler: isParentBased ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [new BatchSpanProcessor({ exporter: spanExporter(exporter), ...batch })],
  });
}

function spanExporter(exporter: Exporter): SpanExporter {
  if (exporter === "console") return new ConsoleSpanExporter();
  return exporter === "http/json" ? new JsonTraceExporter() : new OTLPTraceExporter();
}

function startMeter(
  { metricsIntervalMs }: TelemetrySettings,
  exporter: Exporter,
  resource: Resource,
  readMetrics: () => Promise<Metrics>,
): MeterProvider {
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter(exporter),
    exportIntervalMillis: metricsIntervalMs,
    exportTimeoutMillis: Math.min(metricsIntervalMs, 30_000),
    metricProducers: [createMetricProducer(resource, readMetrics)],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function metricExporter(exporter: Exporter): PushMetricExporter {
  if (exporter === "console") return new ConsoleMetricExporter();
  return exporter === "http/json" ? new JsonMetricExporter() : new OTLPMetricExporter();
}
