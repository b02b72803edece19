// As much of VS Code as the tests of the host's parts need: what was said lies in `said`, and a test answers it.
type Listener<T> = (e: T) => unknown;

export class Disposable {
  static from(...all: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => all.forEach((d) => d.dispose()));
  }
  constructor(private readonly end: () => unknown) {}
  dispose(): void {
    this.end();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (l: Listener<T>): Disposable => {
    this.listeners.add(l);
    return new Disposable(() => this.listeners.delete(l));
  };
  fire(e: T): void {
    for (const l of [...this.listeners]) l(e);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

const state = new EventEmitter<{ focused: boolean }>();

/** What the test sets and sees. */
export const play = {
  settings: {} as Record<string, unknown>,
  /** Notifications that nobody answered yet. */
  said: [] as { text: string; buttons: string[]; press(button?: string): Promise<void> }[],
  ran: [] as string[],
  input: undefined as string | undefined,
  focus(focused: boolean): void {
    window.state.focused = focused;
    state.fire({ focused });
  },
};

const message = (text: string, ...buttons: string[]) =>
  new Promise<string | undefined>((ok) => play.said.push({ text, buttons, press: async (b) => (ok(b), new Promise((later) => setImmediate(later))) }));

export const window = {
  state: { focused: true },
  onDidChangeWindowState: state.event,
  showInformationMessage: message,
  showErrorMessage: message,
  showQuickPick: (rows: unknown[]) => Promise.resolve(rows[0]),
  showInputBox: () => Promise.resolve(play.input),
};

export const workspace = {
  getConfiguration: () => ({ get: (name: string, other: unknown) => play.settings[name] ?? other }),
};

export const commands = {
  executeCommand: (id: string) => (play.ran.push(id), Promise.resolve()),
};

export const Uri = {
  parse: (s: string) => ({ fsPath: s.replace(/^file:\/\//, ""), toString: () => s }),
};

export class ThemeIcon {
  constructor(readonly id: string) {}
}
