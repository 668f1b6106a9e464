// The browser's half of an exhibit: shows controls, inserts the picture that Python drew, and turns moves of the hand
// into a new state. It computes nothing about the subject. Texts from Python are set as text; only what Python marks
// as HTML (pictures, verdicts, sources), which it escaped itself, is inserted as such.

const FITS = 24; // characters that a line to type shows beside a picture
const RESTS = 350; // milliseconds without a move after which the hand is at rest

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const shown = (value, whole) => (whole ? String(value) : Number(value).toPrecision(3).replace(/\.?0+$/, "")).replace("-", "−");

// ---- controls --------------------------------------------------------------------------------------------------

function slider(spec, get, set) {
  const positions = spec.choices.length ? spec.choices.length - 1 : spec.log ? 200 : Math.round((spec.high - spec.low) / spec.step);
  const toValue = (at) => {
    if (spec.choices.length) return spec.choices[at];
    const value = spec.log
      ? spec.low * Math.pow(spec.high / spec.low, at / positions)
      : spec.low + ((spec.high - spec.low) * at) / positions;
    return spec.whole ? Math.round(value) : Number(value.toPrecision(6));
  };
  const toPosition = (value) => {
    if (spec.choices.length) return Math.max(0, spec.choices.indexOf(value));
    const part = spec.log
      ? Math.log(value / spec.low) / Math.log(spec.high / spec.low)
      : (value - spec.low) / (spec.high - spec.low);
    return Math.round(part * positions);
  };
  const read = element("output");
  const input = element("input", { type: "range", min: 0, max: positions, step: 1, "aria-label": spec.label });
  input.addEventListener("input", () => set(toValue(Number(input.value))));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Home") { event.preventDefault(); set(spec.initial); }
    if (event.shiftKey && /^Arrow/.test(event.key)) {
      event.preventDefault();
      const way = /Up|Right/.test(event.key) ? 10 : -10;
      set(toValue(clamp(Number(input.value) + way, 0, positions)));
    }
  });
  const update = () => {
    const value = get();
    const isLast = spec.last && value === spec.choices.at(-1);
    const text = isLast ? spec.last : `${shown(value, spec.whole)}${spec.unit ? " " + spec.unit : ""}`;
    input.value = toPosition(value);
    input.setAttribute("aria-valuetext", text);
    read.textContent = text;
  };
  return [element("label", { class: "control" }, element("span", { class: "name", text: spec.label }), read, input), update];
}

function choice(spec, get, set) {
  const select = element("select", { onchange: () => set(select.value), "aria-label": spec.label });
  spec.options.forEach((option, place) => select.append(element("option", { value: option, text: spec.texts[place] })));
  const kind = spec.name === "printed" ? "control printed" : "control";
  const label = element("label", { class: kind }, element("span", { class: "name", text: spec.label }), select);
  return [label, () => { select.value = get(); }];
}

// key p: a switch is turned, a choice among several errata goes on to the next
function nextForm(spec, value) {
  if (spec.kind !== "choice") return !value;
  return spec.options[(spec.options.indexOf(value) + 1) % spec.options.length];
}

function toggle(spec, get, set) {
  const input = element("input", { type: "checkbox", role: "switch", onchange: () => set(input.checked) });
  const kind = spec.name === "printed" ? "control check printed" : "control check";
  return [element("label", { class: kind }, input, element("span", { text: spec.label })), () => { input.checked = get(); }];
}

function text(spec, get, set) {
  // A line that is longer than its box would be cut: it goes on below, and is one line all the same.
  const rows = Math.max(spec.rows, spec.initial.length > FITS ? 2 : 1), oneLine = spec.rows === 1;
  const input = element(rows > 1 ? "textarea" : "input", {
    maxlength: spec.most, rows: rows > 1 ? rows : false, type: rows > 1 ? false : "text",
    spellcheck: "false", autocomplete: "off", "aria-label": spec.label,
    onkeydown: (event) => { if (oneLine && event.key === "Enter") event.preventDefault(); },
    oninput: () => set(oneLine ? input.value.replace(/\n/g, " ") : input.value),
  });
  const label = element("label", { class: "control" }, element("span", { class: "name", text: spec.label }), input);
  return [label, () => { if (input.value !== get()) input.value = get(); }];
}

function step(spec, get, set, live) {
  let timer = null;
  const most = () => Math.min(spec.most, live.steps || spec.most); // a short message has less steps than there may be
  const pause = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  const forward = () => {
    if (get() >= most()) { pause(); return; }
    set(Math.min(get() + spec.by, most()));
  };
  const once = element("button", { type: "button", text: spec.label || "Step", onclick: forward });
  const play = element("button", {
    type: "button", class: "play", text: "Play",
    onclick: () => {
      if (timer) { pause(); return; }
      play.textContent = "Pause";
      timer = setInterval(() => (document.hidden || !live.visible ? pause() : forward()), spec.interval);
    },
  });
  const back = element("button", { type: "button", text: "Reset", title: "back to the start", onclick: () => { pause(); set(spec.initial); } });
  const read = element("output");
  live.step = forward;
  live.leave.push(pause);
  const update = () => {
    read.textContent = `${Math.min(get(), most())} of ${most()}`;
    once.disabled = get() >= most();
    if (get() >= most() && timer) pause();
  };
  return [element("div", { class: "control buttons", role: "group", "aria-label": spec.label }, once, play, back, read), update];
}

function file(spec, get, set, live) {
  const input = element("input", { type: "file", accept: spec.endings.join(","), "aria-label": spec.label });
  input.addEventListener("change", () => {
    const chosen = input.files[0];
    if (!chosen) return;
    if (chosen.size > spec.most) {
      live.complain(`expected a file of at most ${spec.most.toLocaleString("en")} bytes, got ${chosen.size.toLocaleString("en")}; choose a smaller one`);
      input.value = "";
      return;
    }
    const reader = new FileReader();
    reader.onload = () => set(String(reader.result).split(",", 2)[1] || "");
    reader.onerror = () => live.complain("the file could not be read; choose another");
    reader.readAsDataURL(chosen);
  });
  const label = element("label", { class: "control" }, element("span", { class: "name", text: spec.label }), input);
  return [label, () => {}];
}

function clock(spec, get, set, live) {
  const timer = setInterval(() => { if (live.visible && !document.hidden) set(get() + 1); }, spec.interval);
  live.leave.push(() => clearInterval(timer));
  return [element("span", { hidden: true }), () => {}];
}

const BUILDERS = { slider, choice, switch: toggle, text, step, file, clock };

// ---- the picture's handles -------------------------------------------------------------------------------------

function coordinates(svg, frameNumber, event) {
  const frame = JSON.parse(svg.dataset.frames)[frameNumber];
  const [left, top, width, height] = frame.box;
  const view = svg.viewBox.baseVal;
  const box = svg.getBoundingClientRect();
  const part = [
    (((event.clientX - box.left) * view.width) / box.width - left) / width,
    1 - (((event.clientY - box.top) * view.height) / box.height - top) / height,
  ];
  return [along(frame.x, frame.xlog, part[0]), along(frame.y, frame.ylog, part[1])];
}

function along([low, high], log, part) {
  return log ? low * Math.pow(high / low, part) : low + (high - low) * part;
}

function nudged([low, high], log, value, steps, whole) {
  if (whole) return value + (high > low ? steps : -steps); // a fiftieth of the axis would round to nothing
  return log ? value * Math.pow(high / low, steps / 50) : value + ((high - low) * steps) / 50;
}

function within(spec, [x, y]) {
  return [
    Number(clamp(x, spec.low[0], spec.high[0]).toPrecision(6)),
    Number(clamp(y, spec.low[1], spec.high[1]).toPrecision(6)),
  ];
}

class Picture {
  constructor(host, specs, get, set) {
    Object.assign(this, { host, specs, get, set, held: null, painting: null });
    host.addEventListener("pointerdown", (event) => this.down(event));
    host.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) host.addEventListener(end, () => this.release());
    host.addEventListener("keydown", (event) => this.key(event));
  }
  get svg() { return this.host.querySelector("svg"); }
  put(markup) {
    const focused = this.host.getRootNode().activeElement;
    const name = focused && this.host.contains(focused) ? focused.dataset.name || focused.dataset.paint : null;
    this.host.innerHTML = markup;
    if (name) {
      const again = this.host.querySelector(`[data-name="${CSS.escape(name)}"],[data-paint="${CSS.escape(name)}"]`);
      if (again) again.focus({ preventScroll: true });
    }
    if (this.cursor != null) this.mark(this.cursor);
  }
  moveTo(name, point, along) {
    const [base, index] = name.split(".");
    const spec = this.specs[base];
    if (!spec) return;
    if (spec.kind === "slider") {
      const value = clamp(along === "x" ? point[0] : point[1], spec.low, spec.high);
      this.set(base, spec.whole ? Math.round(value) : Number(value.toPrecision(6)));
      return;
    }
    const now = index == null ? this.get(base) : this.get(base)[index];
    if (!now) return;
    const free = [along === "y" ? now[0] : point[0], along === "x" ? now[1] : point[1]];
    const moved = [...within(spec, free), ...now.slice(2)];
    this.set(base, index == null ? moved : this.get(base).map((each, i) => (i === Number(index) ? moved : each)));
  }
  down(event) {
    const svg = this.svg;
    if (!svg || event.button > 0) return;
    const handle = event.target.closest("[data-name]");
    const cell = event.target.closest("[data-cell]");
    const ground = event.target.closest("[data-place]");
    if (handle) {
      this.held = { name: handle.dataset.name, frame: handle.dataset.frame, along: handle.dataset.along };
      handle.focus({ preventScroll: true });
    } else if (cell) {
      const name = cell.closest("[data-paint]").dataset.paint;
      const spec = this.specs[name];
      const level = (this.get(name)[cell.dataset.cell] + 1) % spec.levels;
      this.painting = { name, level };
      this.paint(cell.dataset.cell);
    } else if (ground) {
      this.place(ground.dataset.place, coordinates(svg, ground.dataset.frame, event));
    } else return;
    event.preventDefault();
    try { this.host.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ }
  }
  place(name, point) {
    const spec = this.specs[name];
    const points = this.get(name);
    if (points.length >= spec.most) return;
    const kind = spec.classes > 1 ? [Math.max(0, this.specs[spec.class_name].options.indexOf(this.get(spec.class_name)))] : [];
    this.set(name, [...points, [...within(spec, point), ...kind]]);
  }
  paint(index) {
    const { name, level } = this.painting;
    if (this.get(name)[index] !== level) this.set(name, this.get(name).map((old, i) => (i === Number(index) ? level : old)));
  }
  move(event) {
    if (this.held) this.moveTo(this.held.name, coordinates(this.svg, this.held.frame, event), this.held.along);
    if (this.painting) {
      const under = this.host.getRootNode().elementFromPoint(event.clientX, event.clientY);
      const cell = under && under.closest("[data-cell]");
      if (cell) this.paint(cell.dataset.cell);
    }
  }
  release() { this.held = this.painting = null; }
  key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const painted = event.target.closest("[data-paint]");
    if (painted) { this.paintKey(event, painted, arrows[event.key]); return; }
    const handle = event.target.closest("[data-name]");
    if (!handle) return;
    const { name, frame, along } = handle.dataset;
    const [base, index] = name.split(".");
    const spec = this.specs[base];
    if (arrows[event.key]) {
      const { x, y, xlog, ylog } = JSON.parse(this.svg.dataset.frames)[frame];
      const steps = arrows[event.key].map((way) => way * (event.shiftKey ? 10 : 1));
      if (spec.kind === "slider" && !spec.log) { // by its own steps: a fiftieth of the axis may round to nothing
        const moved = this.get(base) + (along === "x" ? steps[0] : steps[1]) * (spec.whole ? Math.max(1, spec.step) : spec.step);
        this.moveTo(name, [moved, moved], along);
        event.preventDefault();
        event.stopPropagation();
        return;
      }
      // From where the hand has it, not from where it is drawn: a second key may come before the answer to the first.
      const held = spec.kind === "slider" ? [this.get(base), this.get(base)] : index == null ? this.get(base) : this.get(base)[index];
      if (!held) return;
      const whole = spec.kind === "handle" && spec.whole;
      const at = [nudged(x, xlog, held[0], steps[0], whole), nudged(y, ylog, held[1], steps[1], whole)];
      this.moveTo(name, at, along);
    } else if (event.key === "Home") {
      if (index == null) this.set(base, spec.initial);
      else if (spec.initial[index]) this.set(base, this.get(base).map((each, i) => (i === Number(index) ? spec.initial[i] : each)));
    } else if ((event.key === "Delete" || event.key === "Backspace") && index != null && this.get(base).length > spec.least) {
      this.set(base, this.get(base).filter((_, i) => i !== Number(index)));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
  paintKey(event, group, arrow) {
    const { paint: name, rows, columns } = group.dataset;
    const at = this.cursor ?? 0;
    if (arrow) {
      const row = clamp(Math.floor(at / columns) - arrow[1], 0, rows - 1);
      const column = clamp((at % columns) + arrow[0], 0, columns - 1);
      this.cursor = row * columns + column;
    } else if (event.key === " " || event.key === "Enter") {
      const level = (this.get(name)[at] + 1) % this.specs[name].levels;
      this.cursor = at;
      this.set(name, this.get(name).map((old, i) => (i === at ? level : old)));
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.mark(this.cursor);
  }
  mark(index) {
    this.host.querySelectorAll(".cursor").forEach((each) => each.classList.remove("cursor"));
    const cell = this.host.querySelector(`[data-cell="${index}"]`);
    if (cell) cell.classList.add("cursor");
  }
}

// ---- asking Python ---------------------------------------------------------------------------------------------

function asker(model) {
  // One question is under way at a time: an answer that came before the last one was read would be lost.
  let number = Date.now() % 1e9, last = Promise.resolve();
  const waiting = new Map();
  model.on("change:told", () => {
    const told = model.get("told");
    const answer = waiting.get(told.n);
    if (answer) { waiting.delete(told.n); answer(told); }
  });
  const once = (request) => new Promise((resolve) => {
    number += 1;
    waiting.set(number, resolve);
    model.set("request", { n: number, ...request });
    model.save_changes();
  });
  return (request) => { last = last.then(() => once(request)); return last; };
}

async function verdict(ask, request) {
  for (let tries = 0; tries < 240; tries += 1) {
    const told = await ask({ kind: "verdict", ...request });
    if (!told.waiting) return told;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return { summary: "no verdict", html: "" };
}

// ---- the exhibit -----------------------------------------------------------------------------------------------

function fromLink(spec) {
  const query = new URLSearchParams(location.search);
  if (query.get("at") !== spec.slug) return null;
  const state = {};
  for (const control of spec.controls) {
    const given = query.get(control.name);
    if (given == null) continue;
    if (control.kind === "text" || control.kind === "choice") state[control.name] = given;
    else { try { state[control.name] = JSON.parse(given); } catch { state[control.name] = given; } }
  }
  return state;
}

function toLink(spec, state) {
  const query = new URLSearchParams();
  query.set("at", spec.slug);
  for (const control of spec.controls) {
    const value = state[control.name];
    if (control.kind === "file" || control.kind === "clock" || same(value, control.initial)) continue;
    const text = control.kind === "text" || control.kind === "choice" ? value : control.kind === "switch" ? (value ? "1" : "0") : JSON.stringify(value);
    if (text.length <= 2000) query.set(control.name, text);
  }
  const kept = new URLSearchParams(location.search);
  for (const name of ["teacher", "run"]) if (kept.has(name)) query.set(name, kept.get(name));
  return `${location.pathname}?${query}`;
}

function renderExhibit({ model, el }) {
  const spec = model.get("spec");
  const ask = asker(model);
  const state = Object.fromEntries(spec.controls.map((control) => [control.name, control.initial]));
  const specs = Object.fromEntries(spec.controls.map((control) => [control.name, control]));
  const live = { visible: true, leave: [], complain: (line) => complain(line) };
  // marimo mounts a widget anew where the reader's system turns dark: what was mounted before is gone then.
  let sent = model.get("view").n || 0, under = false, next = false, rest = null, view = model.get("view"), gone = false;

  const picture = element("div", { class: "picture" });
  const error = element("p", { class: "error", role: "alert", hidden: true });
  const complain = (line) => { error.textContent = line; error.hidden = !line; };
  const numbers = element("dl", { class: "numbers" });
  const note = element("p", { class: "note" });
  const surprise = element("p", { class: "surprise", hidden: true, text: spec.surprise });
  const announce = element("p", { class: "sr", "aria-live": "polite" });
  const code = element("pre", { class: "fold code", hidden: true, tabindex: "0" });
  const definition = element("div", { class: "fold", hidden: true });
  const proof = element("div", { class: "fold", hidden: true });
  const wanting = element("div", { class: "wanting", hidden: true });

  const set = (name, value) => {
    if (same(state[name], value)) return;
    state[name] = value;
    refresh();
    send();
    clearTimeout(rest);
    rest = setTimeout(atRest, RESTS);
  };
  const send = () => {
    if (under) { next = true; return; }
    under = true; next = false; sent += 1;
    picture.parentElement.setAttribute("data-sent", sent);
    model.set("asked", { n: sent, state: { ...state } });
    model.save_changes();
  };
  const atRest = () => {
    history.replaceState(null, "", toLink(spec, state));
    announce.textContent = view.alt || "";
  };
  const handles = new Picture(picture, specs, (name) => state[name], set);

  const updates = [];
  const side = element("div", { class: "side" });
  for (const control of spec.controls) {
    const build = BUILDERS[control.kind];
    if (!build) continue;
    const [shownControl, update] = build(control, () => state[control.name], (value) => set(control.name, value), live);
    side.append(shownControl);
    updates.push(update);
  }
  const refresh = () => updates.forEach((update) => update());
  side.append(note, numbers);

  const fold = (button, block, fill) => {
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", async () => {
      block.hidden = !block.hidden;
      button.setAttribute("aria-expanded", String(!block.hidden));
      if (!block.hidden && fill) await fill();
    });
    return button;
  };
  const verdictButton = element("button", { type: "button", class: "plain", text: "check…", hidden: !spec.has_claims });
  const again = element("button", { type: "button", class: "plain", text: "again, with another seed" });
  let seed = 0;
  const check = async (newSeed) => {
    seed = newSeed;
    verdictButton.textContent = "checking…";
    const told = await verdict(ask, { seed });
    verdictButton.textContent = told.summary;
    proof.innerHTML = told.html;
    proof.append(again);
  };
  again.addEventListener("click", () => check(seed + 1));
  fold(verdictButton, proof);
  const codeButton = fold(element("button", { type: "button", class: "plain", text: "code" }), code);
  const definitionButton = fold(
    element("button", { type: "button", class: "plain", text: "definition", hidden: !spec.has_definition }), definition,
    async () => { if (!definition.childNodes.length) definition.innerHTML = (await ask({ kind: "definition" })).html; },
  );
  const linkButton = element("button", {
    type: "button", class: "plain", text: "link",
    onclick: async () => {
      history.replaceState(null, "", toLink(spec, state));
      try { await navigator.clipboard.writeText(location.href); linkButton.textContent = "link copied"; }
      catch { linkButton.textContent = "link is in the address bar"; }
      setTimeout(() => { linkButton.textContent = "link"; }, 2000);
    },
  });
  // What an id says, with its indices set low: a title attribute could show them only as they are typed.
  const ids = element("span", { class: "ids" }), says = element("span", { class: "says", role: "tooltip", hidden: true });
  for (const [id, html] of spec.ids) {
    const tell = () => { says.innerHTML = html; says.hidden = false; };
    const hush = () => { says.hidden = true; };
    const each = element("abbr", { text: id, tabindex: "0", onmouseenter: tell, onfocus: tell, onmouseleave: hush, onblur: hush });
    says.innerHTML = html;
    each.setAttribute("aria-description", says.textContent);
    ids.append(each, " ");
  }

  const section = element(
    "section", { class: "exhibit quoin-lab", id: spec.slug, "aria-label": spec.question },
    element("h2", { text: spec.question }), spec.intro ? element("p", { class: "intro", text: spec.intro }) : null,
    element("div", { class: "body" }, element("div", { class: "stage" }, wanting, picture), side),
    error, surprise,
    element("footer", {}, ids, says, verdictButton, codeButton, definitionButton, linkButton), proof, code, definition, announce,
  );
  el.replaceChildren(section);
  if (new URLSearchParams(location.search).get("teacher") === "1") section.classList.add("teacher");

  const show = () => {
    if (gone) return;
    view = model.get("view");
    complain(view.error || "");
    picture.classList.toggle("pale", Boolean(view.error));
    wanting.hidden = !view.needs;
    if (view.needs) want(view.needs);
    if (view.svg) {
      handles.put(view.svg);
      numbers.replaceChildren(...view.numbers.flatMap((each) => [
        element("dt", { text: each.label, class: each.printed ? "printed" : null }),
        element("dd", { text: each.text, class: each.printed ? "printed" : null }),
      ]));
      note.textContent = view.note;
      live.steps = view.steps;
      refresh();
      code.textContent = view.code;
      codeButton.hidden = !view.code;
      if (view.reached && spec.surprise) surprise.hidden = false;
    }
    picture.parentElement.setAttribute("data-shown", view.n);
    under = false;
    if (next) send();
  };
  const want = (needs) => {
    const bar = element("progress", { max: 1, value: 0, hidden: true, "aria-label": "training" });
    const line = element("span");
    const stop = element("button", { type: "button", text: "Stop", hidden: true, onclick: () => ask({ kind: "stop" }) });
    const start = element("button", { type: "button", text: `Train it (about ${needs.seconds} s)` });
    start.addEventListener("click", async () => {
      start.hidden = true; bar.hidden = stop.hidden = false;
      let kind = "train";
      for (;;) {
        const told = await ask({ kind });
        kind = "training";
        if (told.done) { send(); return; }
        if (told.error || told.stopped || !section.isConnected) {
          line.textContent = told.error || "stopped; nothing was kept";
          start.hidden = false; bar.hidden = stop.hidden = true;
          return;
        }
        bar.value = told.fraction;
        line.textContent = told.fraction >= 1 ? `${told.recipe}: evaluating` : `${told.recipe}: ${Math.round(100 * told.fraction)}%`;
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
    });
    stop.addEventListener("click", () => { line.textContent = "stopping"; });
    wanting.replaceChildren(
      element("p", { text: `This picture needs a small trained model (${needs.recipes.join(", ")}). Quoin trains it once and keeps it in its cache.` }),
      element("p", {}, start, bar, " ", line, " ", stop),
    );
  };

  model.on("change:view", show);
  Object.assign(state, fromLink(spec) || {});
  refresh();
  show();
  if (fromLink(spec)) { send(); requestAnimationFrame(() => section.scrollIntoView()); }
  const query = new URLSearchParams(location.search), item = query.get("item");
  if (spec.ids.some(([id]) => id === item)) { // a link to an item: the first exhibit that shows it takes it
    query.delete("item");
    history.replaceState(null, "", `${location.pathname}?${query}`);
    requestAnimationFrame(() => section.scrollIntoView());
  }

  const keys = (event) => {
    const typing = event.composedPath()[0];
    if (typing && /^(INPUT|TEXTAREA|SELECT)$/.test(typing.tagName) && typing.type !== "range" && typing.type !== "checkbox") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "p" && specs.printed) set("printed", nextForm(specs.printed, state.printed));
    else if (event.key === "c") codeButton.click();
    else if (event.key === "l") linkButton.click();
    else if (event.key === "n") section.classList.toggle("show-numbers");
    else if (event.key === "Enter" && live.step && event.target.closest?.("[data-name]")) live.step();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  section.addEventListener("keydown", keys);
  const go = (event) => { if (event.detail === spec.slug) section.scrollIntoView({ behavior: "instant" }); };
  const teach = () => section.classList.toggle("teacher");
  document.addEventListener("quoin:go", go);
  document.addEventListener("quoin:teacher", teach);
  const seen = new IntersectionObserver((entries) => {
    live.visible = entries.some((entry) => entry.isIntersecting);
    if (live.visible && spec.has_claims && verdictButton.textContent === "check…") check(0);
  });
  seen.observe(section);
  return () => {
    document.removeEventListener("quoin:go", go);
    document.removeEventListener("quoin:teacher", teach);
    gone = true;
    seen.disconnect(); live.leave.forEach((leave) => leave()); };
}

// ---- the rest of an area ---------------------------------------------------------------------------------------

function renderItems({ model, el }) {
  const ask = asker(model);
  const list = element("div", { class: "items" });
  for (const item of model.get("items")) {
    const body = element("div", { class: "item" });
    const marks = [item.claim ? "claim" : "", item.figure ? "figure" : "", item.notation ? "notation" : ""].filter(Boolean).join(", ");
    const title = element("span");
    title.innerHTML = item.html;
    const row = element(
      "details", { id: item.id, "data-words": `${item.words} ${marks}`.toLowerCase() },
      element("summary", {}, element("b", { text: item.id }), " ", title, " ", element("small", { text: [item.tags.class, marks].filter(Boolean).join(", ") })), body,
    );
    row.tags = item.tags;
    row.addEventListener("toggle", async () => {
      if (!row.open || body.dataset.filled) return;
      body.dataset.filled = "1";
      body.textContent = "…";
      body.innerHTML = (await ask({ kind: "item", id: item.id })).html;
      if (item.link) body.append(element("p", {}, element("a", { href: item.link, text: "to its exhibit" })));
      if (item.claim) {
        const place = element("div", { text: "checking…" });
        body.prepend(place);
        place.innerHTML = (await verdict(ask, { id: item.id, seed: 0 })).html;
      }
    });
    list.append(row);
  }
  const count = element("span", { class: "note", "aria-live": "polite" });
  const filter = element("input", { type: "text", maxlength: 60, "aria-label": "filter", placeholder: "filter by id, word or area" });
  // One list to choose from for each kind of tag; its values in the order in which the rows have them.
  const choices = [...new Set([...list.children].flatMap((row) => Object.keys(row.tags)))].map((kind) => {
    const values = [...new Set([...list.children].map((row) => row.tags[kind]))];
    const select = element("select", { "aria-label": kind, name: kind }, element("option", { value: "", text: `every ${kind}` }));
    for (const value of values) select.append(element("option", { value, text: value }));
    return select;
  });
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of list.children) {
      const chosen = choices.every((each) => !each.value || row.tags[each.name] === each.value);
      row.hidden = !chosen || !words.every((word) => row.dataset.words.includes(word));
    }
    count.textContent = `${[...list.children].filter((row) => !row.hidden).length} of ${list.children.length}`;
  };
  for (const each of [filter, ...choices]) each.addEventListener("input", narrow);
  const heading = model.get("heading");
  el.replaceChildren(element(
    "section", { class: "rest quoin-lab" }, heading ? element("h2", { text: heading }) : null,
    model.get("filtered") ? element("p", { class: "control filter" }, filter, ...choices, count) : null, list,
    list.children.length ? null : element("p", { class: "note", text: "Nothing: every item of it stands at an exhibit above." }),
  ));
  const wanted = new URLSearchParams(location.search).get("item");
  const row = wanted && [...list.children].find((each) => each.id === wanted);
  if (row) { row.open = true; requestAnimationFrame(() => row.scrollIntoView()); }
}

function renderLines({ model, el }) {
  const list = element("ul");
  for (const line of model.get("lines")) {
    const item = element("li");
    item.innerHTML = line;
    list.append(item);
  }
  el.replaceChildren(element("section", { class: "rest quoin-lab" }, element("h2", { text: model.get("heading") }), list));
}

// ---- the gallery -----------------------------------------------------------------------------------------------

function renderGallery({ model, el }) {
  const ask = asker(model);
  const grid = element("div", { class: "gallery" });
  const large = element("dialog", { class: "large quoin-lab", "aria-label": "figure" });
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { seen.unobserve(target); fill(target); }
  }, { rootMargin: "200px" });
  const fill = async (card) => {
    const told = await ask({ kind: "figure", id: card.dataset.id, given: {} });
    card.querySelector(".plot").innerHTML = told.html;
  };
  const show = async (item) => {
    const given = {};
    const plot = element("div", { class: "plot" });
    const error = element("p", { class: "error", role: "alert", hidden: true });
    const code = element("pre", { text: item.code, tabindex: "0" });
    const draw = async () => {
      const told = await ask({ kind: "figure", id: item.id, given: { ...given } });
      error.hidden = !told.error;
      error.textContent = told.error || "";
      if (told.html) { plot.innerHTML = told.html; code.textContent = told.code; }
    };
    const side = element("div", { class: "side" });
    for (const parameter of item.parameters) {
      const input = element("input", { type: "number", value: parameter.value, step: parameter.whole ? 1 : "any", "aria-label": parameter.name });
      input.addEventListener("change", () => { given[parameter.name] = Number(input.value); draw(); });
      side.append(element("label", { class: "control" }, element("span", { class: "name", text: parameter.name.replaceAll("_", " ") }), input));
    }
    const save = (kind) => element("button", { type: "button", text: kind.toUpperCase(), onclick: async () => {
      const told = await ask({ kind, id: item.id, given: { ...given } });
      if (told.data) element("a", { href: told.data, download: `${item.id}.${kind}` }).click();
    } });
    large.replaceChildren(
      element("p", { class: "control buttons" }, element("b", { text: item.id }), save("svg"), save("png"),
        element("a", { href: item.page, text: "its page" }), element("button", { type: "button", text: "Close", onclick: () => large.close() })),
      element("p", { text: item.caption }), element("div", { class: "body" }, plot, side), error, code,
    );
    large.showModal();
    await draw();
  };
  for (const item of model.get("figures")) {
    const card = element(
      "button", { type: "button", class: "card", "data-id": item.id, onclick: () => show(item) },
      element("span", { class: "plot", text: "…" }), element("span", { class: "caption" }, element("b", { text: item.id }), ` ${item.caption}`),
    );
    grid.append(card);
    seen.observe(card);
  }
  el.replaceChildren(element("section", { class: "rest quoin-lab" }, grid, large));
  return () => seen.disconnect();
}

// ---- the head of a page ----------------------------------------------------------------------------------------

const HELP = [
  ["Tab", "to the next control or handle"], ["arrows", "move it a step; with Shift ten"], ["Home", "back to its default"],
  ["Enter", "on a handle: step"], ["Delete", "on a point: remove it"], ["p", "as printed"], ["c", "code"], ["l", "link"],
  ["/", "search"], ["t", "teacher: large type, numbers hidden until n"], ["?", "this help"],
];

function renderHead({ model, el }) {
  const head = model.get("head");
  const help = element("dl", { class: "help", hidden: true });
  for (const [key, what] of HELP) help.append(element("dt", { text: key }), element("dd", { text: what }));
  const jump = element("nav", { class: "jump", "aria-label": "exhibits" });
  for (const { slug, question } of head.exhibits) {
    jump.append(element("button", { type: "button", class: "plain", text: question, onclick: () => document.dispatchEvent(new CustomEvent("quoin:go", { detail: slug })) }));
  }
  const pages = element("nav", { class: "pages", "aria-label": "pages" }, element("a", { href: "../", text: "All pages" }));
  if (head.before) pages.append(element("a", { href: `../${head.before}/`, text: `← ${head.before}` }));
  if (head.after) pages.append(element("a", { href: `../${head.after}/`, text: `${head.after} →` }));
  pages.append(element("button", { type: "button", class: "plain", text: "keys", onclick: () => { help.hidden = !help.hidden; } }));
  const header = element("header", { class: "head quoin-lab" }, pages, element("h1", { text: head.title }), element("p", { class: "sentence", text: head.sentence }), jump, help);
  el.replaceChildren(header);
  // marimo's page and cells are of a slightly other colour than our paper, and would show as stripes between exhibits
  const paper = document.getElementById("quoin-paper") || document.head.appendChild(element("style", { id: "quoin-paper" }));
  paper.textContent = `#App, #App .marimo-cell { background: ${getComputedStyle(header).backgroundColor} !important; }`;
  const keys = (event) => {
    const typing = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && /^(INPUT|TEXTAREA|SELECT)$/.test(typing.tagName) && !/range|checkbox/.test(typing.type))) return;
    if (event.key === "?") help.hidden = !help.hidden;
    else if (event.key === "/") location.href = "../?search";
    else if (event.key === "t") document.dispatchEvent(new CustomEvent("quoin:teacher"));
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", keys);
  return () => document.removeEventListener("keydown", keys);
}

export default {
  render: (context) => {
    const kinds = { spec: renderExhibit, head: renderHead, figures: renderGallery, items: renderItems, lines: renderLines };
    const kind = Object.keys(kinds).find((name) => context.model.get(name));
    return kinds[kind](context);
  },
};
