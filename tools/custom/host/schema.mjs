// Arguments as tools describe them: an object of zod types (the person's own zod or ours, 3 or 4), a zod object, or a
// JSON Schema.
import { z } from "./zod.mjs";

const isZod = (v) => typeof v === "object" && v !== null && typeof v.safeParse === "function";

/** The properties of whatever a tool gives as its arguments, or undefined where they are a JSON Schema. */
function shapeOf(args) {
  if (args === undefined || args === null) return {};
  if (isZod(args)) return typeof args.shape === "object" ? args.shape : typeof args._def?.shape === "function" ? args._def.shape() : { value: args };
  if (Object.values(args).every(isZod)) return args;
  return undefined;
}

export const isOptional = (type) => type.safeParse(undefined).success;

/** @returns {{schema: object, problem?: string}} a JSON Schema for the model */
export function jsonSchema(args) {
  const shape = shapeOf(args);
  if (!shape) {
    if (args.type === "object" || args.properties) return { schema: { type: "object", properties: {}, ...args } };
    return { schema: { type: "object", properties: {} }, problem: "args is neither an object of zod types nor a JSON Schema" };
  }
  const properties = {};
  const required = [];
  let problem;
  for (const [name, type] of Object.entries(shape)) {
    try {
      properties[name] = type._zod ? modern(type) : old(type);
    } catch (e) {
      properties[name] = {}; // what JSON Schema cannot say is checked when the tool is called
      problem = `${name}: ${e.message}`;
    }
    if (!isOptional(type)) required.push(name);
  }
  return { schema: { type: "object", properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false }, problem };
}

function modern(type) {
  // A type may say itself what it is. zod asks it too, but not where the type came from .describe() or .meta() of another zod.
  const { $schema, ...schema } = type._zod.toJSONSchema?.() ?? z.toJSONSchema(type, { unrepresentable: "any", io: "input", reused: "inline" });
  void $schema;
  const description = type.description ?? type.meta?.()?.description;
  if (description && !schema.description) schema.description = description;
  return schema;
}

/** zod 3 has no JSON Schema of its own. */
function old(type) {
  const def = type._def;
  const inner = def.innerType ?? def.schema ?? def.type;
  const kind = {
    ZodString: () => ({ type: "string" }),
    ZodNumber: () => ({ type: def.checks?.some((c) => c.kind === "int") ? "integer" : "number" }),
    ZodBoolean: () => ({ type: "boolean" }),
    ZodEnum: () => ({ type: "string", enum: [...def.values] }),
    ZodNativeEnum: () => ({ enum: Object.values(def.values) }),
    ZodLiteral: () => ({ const: def.value }),
    ZodArray: () => ({ type: "array", items: old(def.type) }),
    ZodRecord: () => ({ type: "object", additionalProperties: old(def.valueType) }),
    ZodUnion: () => ({ anyOf: [...def.options].map(old) }),
    ZodObject: () => jsonSchema(type).schema,
    ZodOptional: () => old(inner),
    ZodNullable: () => ({ anyOf: [old(inner), { type: "null" }] }),
    ZodDefault: () => ({ ...old(inner), default: def.defaultValue() }),
    ZodEffects: () => old(inner),
    ZodReadonly: () => old(inner),
    ZodBranded: () => old(inner),
  }[def.typeName];
  const schema = kind ? kind() : {};
  return type.description ? { ...schema, description: type.description } : schema;
}

/** Checks arguments and fills in defaults. A problem names the argument. */
export function parse(args, given) {
  const shape = shapeOf(args);
  const value = { ...(given ?? {}) };
  const problems = [];
  if (!shape) return { value, problems };
  for (const [name, type] of Object.entries(shape)) {
    const r = type.safeParse(value[name]);
    if (!r.success) for (const issue of r.error.issues ?? []) problems.push(`${[name, ...issue.path].join(".")}: ${issue.message}`);
    else if (r.data !== undefined) value[name] = r.data;
  }
  if (problems.length === 0 && isZod(args) && typeof args.shape === "object") {
    const r = args.safeParse(value); // rules that go across arguments
    if (!r.success) for (const issue of r.error.issues ?? []) problems.push(`${issue.path.join(".") || "arguments"}: ${issue.message}`);
    else return { value: r.data, problems };
  }
  return { value, problems };
}
