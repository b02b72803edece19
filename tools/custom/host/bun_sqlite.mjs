// bun:sqlite is not in Node. A plugin that imports it loads, and its other tools work; opening a database says what to do.
export class Database {
  constructor() {
    throw new Error("bun:sqlite is not here: this runs in Node. Set js_runtime to a bun that is installed");
  }
}
export default Database;
