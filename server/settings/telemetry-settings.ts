import { z } from "zod";
import { integer, share } from "./setting-types.ts";

export type TelemetrySettings = NonNullable<ReturnType<typeof readTelemetrySettings>>;

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
];

const positive = integer(1, Number.MAX_SAFE_INTEGER, "must be a positive whole number");

const schema = z.object({
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS, { error: `must be one of ${SAMPLERS.join(", ")}` })
    .default("parentbased_always_on"),
  OTEL_TRACES_SAMPLER_ARG: share.default(1),
  OTEL_BSP_SCHEDULE_DELAY: positive.default(5000),
  OTEL_BSP_MAX_QUEUE_SIZE: positive.default(2048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: positive.default(512),
});

/**
 * Undefined unless an endpoint or an exporter is set; `problems` gets a message for each invalid variable. The SDK for
 * traces reads none of them itself.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function readTelemetrySettings(environment: NodeJS.ProcessEnv, problems: string[]) {
  if (environment.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  const { OTEL_METRICS_EXPORTER = environment.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT } = environment;
  if (OTEL_METRICS_EXPORTER && OTEL_METRICS_EXPORTER !== "none")
    problems.push("OTEL_METRICS_EXPORTER must be none: metrics are only served at /metrics");
  const exporter = exporterOf(environment, problems);
  if (!exporter) return undefined;
  const { data, error } = schema.safeParse(environment);
  problems.push(...(error?.issues ?? []).map(({ path, message }) => `${path.join(".")} ${message}`));
  if (!data) return undefined;
  const sampler = data.OTEL_TRACES_SAMPLER;
  const ratio = sampler.endsWith("traceidratio") ? data.OTEL_TRACES_SAMPLER_ARG : 1;
  return {
    exporter,
    isParentBased: sampler.startsWith("parentbased_"),
    sampleRatio: sampler.endsWith("always_off") ? 0 : ratio,
    batch: {
      scheduledDelayMillis: data.OTEL_BSP_SCHEDULE_DELAY,
      maxQueueSize: data.OTEL_BSP_MAX_QUEUE_SIZE,
      maxExportBatchSize: data.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    },
  };
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
