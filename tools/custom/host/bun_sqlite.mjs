// bun:sqlite is not in Node. A file that imports it loads, and its other tools work; opening a database says what to do.
import { missing } from "./bun.mjs";

export const Database = missing("bun:sqlite.Database");
export const constants = {};
export default Database;
