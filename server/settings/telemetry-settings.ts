export type TelemetrySettings = NonNullable<ReturnType<typeof readTelemetrySettings>>;

/**
 * Undefined unless an endpoint or an exporter is set; `problems` gets a message for each invalid variable.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function readTelemetrySettings(environment: NodeJS.ProcessEnv, problems: string[]) {
  if (environment.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  refuseMetrics(environment, problems);
  const exporter = exporterOf(environment, problems);
  if (!exporter) return undefined;
  const number = (name: string, byDefault: number) => numberOf(environment, name, byDefault, problems);
  return {
    exporter,
    ...samplerOf(environment, problems),
    batch: {
      scheduledDelayMillis: number("OTEL_BSP_SCHEDULE_DELAY", 5000),
      maxQueueSize: number("OTEL_BSP_MAX_QUEUE_SIZE", 2048),
      maxExportBatchSize: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
    },
  };
}

function refuseMetrics(environment: NodeJS.ProcessEnv, problems: string[]): void {
  const { OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT } = environment;
  if (OTEL_METRICS_EXPORTER === "none") return;
  if (OTEL_METRICS_EXPORTER || OTEL_EXPORTER_OTLP_METRICS_ENDPOINT)
    problems.push("OTEL_METRICS_EXPORTER must be none: metrics are only served at /metrics");
}

function exporterOf(environment: NodeJS.ProcessEnv, problems: string[]) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_TRACES_EXPORTER } =
    environment;
  const hasEndpoint = OTEL_EXPORTER_OTLP_ENDPOINT || OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const exporter = OTEL_TRACES_EXPORTER || (hasEndpoint ? "otlp" : "none");
  if (exporter === "none") return undefined;
  if (exporter === "console") return "console";
  if (exporter !== "otlp") problems.push("OTEL_TRACES_EXPORTER must be otlp, console or none");
  const names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
  const name = names.find((one) => environment[one]);
  const protocol = name === undefined ? "http/protobuf" : environment[name];
  if (protocol === "http/protobuf" || protocol === "http/json") return protocol;
  problems.push(`${name} must be http/protobuf or http/json`);
  return "http/protobuf";
}

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
];

function samplerOf(environment: NodeJS.ProcessEnv, problems: string[]) {
  const sampler = environment.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  if (!SAMPLERS.includes(sampler)) problems.push(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(", ")}`);
  const isParentBased = sampler.startsWith("parentbased_");
  if (sampler.endsWith("always_off")) return { sampleRatio: 0, isParentBased };
  if (!sampler.endsWith("traceidratio")) return { sampleRatio: 1, isParentBased };
  const sampleRatio = Number(environment.OTEL_TRACES_SAMPLER_ARG || 1);
  if (!(sampleRatio >= 0 && sampleRatio <= 1))
    problems.push("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1");
  return { sampleRatio, isParentBased };
}

function numberOf(
  environment: NodeJS.ProcessEnv,
  name: string,
  byDefault: number,
  problems: string[],
): number {
  const value = Number(environment[name] || byDefault);
  if (!Number.isInteger(value) || value < 1) problems.push(`${name} must be a positive whole number`);
  return value;
}
