// What tools and plugins import as "@opencode-ai/plugin" or "@pillion/plugin".
import { z } from "./zod.mjs";

export function tool(definition) {
  return definition;
}
tool.schema = z;
export { z };
