/** A question of the agent as a form. */
import type { Field, Question } from "../common/view";
import type { Bus } from "./bus";
import { button, h, icon, plural } from "./dom";

type Value = string | number | boolean | string[];

export function questionForm(q: Question, bus: Bus, pager: HTMLElement | false): HTMLElement {
  const form = h("div", { class: "card question", role: "group", aria: { label: "A question for you" } });
  const shownFields = q.fields.filter((f) => !q.fields.some((g) => g.other === f.key));
  const fields = shownFields.map((f) => drawField(f, q));
  const problem = h("div", { class: "problem-text", role: "alert", hidden: true });
  // texts of the fields are not repeated in the question
  const said = q.message.trim() === shownFields.map((f) => f.description ?? f.title).join("\n").trim();
  const submit = () => {
    const values: Record<string, Value> = {};
    for (const f of fields) Object.assign(values, f.read());
    const missing = q.fields.find((f) => f.required && (values[f.key] === undefined || values[f.key] === ""));
    problem.hidden = !missing;
    problem.textContent = missing ? `Please answer “${missing.title}”, or skip the question.` : "";
    if (!missing) bus.post({ type: "answer", requestId: q.requestId, values });
  };
  const answer = button("Answer", "primary", submit);
  form.append(
    h("div", { class: "card-head" }, icon("question"), h("strong", { class: "card-title" }, shownFields.length > 1 ? plural(shownFields.length, "question") : "A question"), pager),
    h("div", { class: "card-body" }, said ? "" : h("div", { class: "what" }, q.message), ...fields.map((f) => f.el), problem),
    h("div", { class: "card-foot" }, h("div", { class: "decide" }, answer, button("Skip", "secondary", () => bus.post({ type: "answer", requestId: q.requestId, values: null })))),
  );
  // not an HTML form: the sandbox of a webview lets none be submitted
  form.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.isComposing || !(e.target instanceof HTMLInputElement) || answer.disabled) return;
    e.preventDefault();
    submit();
  });
  return form;
}

interface Drawn {
  el: HTMLElement;
  read(): Record<string, Value>;
}

function drawField(f: Field, q: Question): Drawn {
  const name = `q-${q.requestId}-${f.key}`;
  const legend = [h("span", { class: "field-title" }, f.description ?? f.title)];
  if (f.type === "choice" || f.type === "choices") {
    const inputs = f.options.map((o, i) => {
      const input = h("input");
      input.type = f.type === "choice" ? "radio" : "checkbox";
      input.name = name;
      input.value = o.value;
      input.id = `${name}-${String(i)}`;
      input.checked = Array.isArray(f.initial) ? f.initial.includes(o.value) : f.initial === o.value;
      const label = h("label", { class: "choice" }, input, h("span", {}, o.label, o.description && h("span", { class: "muted" }, ` ${o.description}`)));
      return { input, label };
    });
    const own = f.other !== undefined ? textInput("In your own words", "") : undefined;
    own?.addEventListener("input", () => {
      if (own.value && f.type === "choice") for (const { input } of inputs) input.checked = false;
    });
    const set = h("fieldset", { class: "choices" }, h("legend", {}, ...legend), ...inputs.map((i) => i.label), own);
    return {
      el: set,
      read: () => {
        const picked = inputs.filter((i) => i.input.checked).map((i) => i.input.value);
        const out: Record<string, Value> = {};
        if (f.type === "choices") out[f.key] = picked;
        else if (picked[0] !== undefined) out[f.key] = picked[0];
        if (own?.value.trim() && f.other !== undefined) out[f.other] = own.value.trim();
        return out;
      },
    };
  }
  if (f.type === "boolean") {
    const input = h("input");
    input.type = "checkbox";
    input.checked = f.initial === true;
    return { el: h("label", { class: "choice" }, input, h("span", {}, f.description ?? f.title)), read: () => ({ [f.key]: input.checked }) };
  }
  const input = textInput(f.title, f.initial === undefined ? "" : String(f.initial as string | number));
  if (f.type !== "text") {
    input.type = "number";
    input.step = f.type === "integer" ? "1" : "any";
    if (f.min !== undefined) input.min = String(f.min);
    if (f.max !== undefined) input.max = String(f.max);
  }
  return {
    el: h("label", { class: "labelled" }, ...legend, input),
    read: () => (input.value === "" ? {} : { [f.key]: f.type === "text" ? input.value : Number(input.value) }),
  };
}

function textInput(label: string, value: string): HTMLInputElement {
  const input = h("input", { class: "field", aria: { label } });
  input.placeholder = label;
  input.value = value;
  return input;
}
