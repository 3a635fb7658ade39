"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panes = {};
  const detail = document.getElementById("detail");

  const element = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  // --- pan and zoom: the pane scrolls, so that touch and keys work; the picture has another size

  class Pane {
    constructor(root) {
      this.key = root.dataset.pane;
      this.scroll = root.querySelector(".scroll");
      this.picture = this.scroll.querySelector("svg");
      this.marks = [...this.scroll.querySelectorAll("[data-i]")];
      this.entries = data[this.key];
      this.names = new Map(this.entries.map((entry, number) => [entry.n, number]));
      if (this.picture) {
        this.width = this.picture.viewBox.baseVal.width;
        this.height = this.picture.viewBox.baseVal.height;
        this.zoom(this.start());
        this.scroll.scrollTop = 0;
        this.watch(root);
      }
      this.scroll.addEventListener("click", event => {
        const mark = event.target.closest("[data-i]");
        if (mark && !this.moved) select(this, Number(mark.dataset.i));
      });
    }

    start() {
      return Math.min(1, Math.max(0.55, this.scroll.clientWidth / this.width));
    }

    zoom(scale, x = this.scroll.clientWidth / 2, y = this.scroll.clientHeight / 2) {
      const old = this.scale || scale;
      const left = (this.scroll.scrollLeft + x) / old, top = (this.scroll.scrollTop + y) / old;
      this.scale = Math.min(3, Math.max(0.05, scale));
      this.picture.setAttribute("width", Math.round(this.width * this.scale));
      this.picture.setAttribute("height", Math.round(this.height * this.scale));
      this.scroll.scrollLeft = left * this.scale - x;
      this.scroll.scrollTop = top * this.scale - y;
    }

    step(name) {
      const whole = Math.min(this.scroll.clientWidth / this.width, this.scroll.clientHeight / this.height);
      this.zoom(name === "fit" ? whole : this.scale * (name === "in" ? 1.3 : 1 / 1.3));
    }

    watch(root) {
      root.querySelectorAll("[data-zoom]").forEach(button =>
        button.addEventListener("click", () => this.step(button.dataset.zoom)));
      this.scroll.addEventListener("keydown", event => {
        const name = { "+": "in", "=": "in", "-": "out", "0": "fit" }[event.key];
        if (name && !event.ctrlKey && !event.metaKey) { this.step(name); event.preventDefault(); }
      });
      this.scroll.addEventListener("wheel", event => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const box = this.scroll.getBoundingClientRect();
        this.zoom(this.scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
      }, { passive: false });
      this.scroll.addEventListener("pointerdown", event => {
        this.moved = false;
        if (event.pointerType !== "mouse" || event.button) return;
        const start = [event.clientX + this.scroll.scrollLeft, event.clientY + this.scroll.scrollTop];
        const move = now => {
          if (Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) > 4) this.moved = true;
          this.scroll.classList.toggle("drag", this.moved);
          this.scroll.scrollLeft = start[0] - now.clientX;
          this.scroll.scrollTop = start[1] - now.clientY;
        };
        const end = () => {
          window.removeEventListener("pointermove", move);
          window.removeEventListener("pointerup", end);
          this.scroll.classList.remove("drag");
        };
        window.addEventListener("pointermove", move);
        window.addEventListener("pointerup", end);
      });
    }

    mark(name, numbers) {
      this.marks.forEach((mark, number) => mark.classList.toggle(name, numbers.has(number)));
    }

    show(number) {
      const mark = this.marks[number];
      if (!mark) return;
      const box = mark.getBoundingClientRect(), around = this.scroll.getBoundingClientRect();
      this.scroll.scrollLeft += box.left - around.left - (around.width - box.width) / 2;
      this.scroll.scrollTop += box.top - around.top - (around.height - box.height) / 2;
    }
  }

  document.querySelectorAll(".pane").forEach(root => { panes[root.dataset.pane] = new Pane(root); });

  // --- a selected node

  const other = pane => panes[pane.key === "before" ? "after" : "before"];

  /** The numbers of the nodes of the other graph that a node is from, or that are from it. */
  const kin = (pane, entry) => {
    const found = new Set(), there = other(pane);
    if (!there) return found;
    const add = name => { if (there.names.has(name)) found.add(there.names.get(name)); };
    if (pane.key === "after" && entry.s) entry.s.forEach(add);
    if (pane.key === "before") {
      there.entries.forEach((each, number) => { if ((each.s || []).includes(entry.n)) found.add(number); });
    }
    if (!found.size) add(entry.n);
    return found;
  };

  const row = (list, title, values, make) => {
    if (!values || !values.length) return;
    element("dt", title, list);
    const cell = element("dd", undefined, list);
    values.forEach(value => { const line = element("div", undefined, cell); make(line, value); });
  };

  const text = (line, value) => { line.textContent = value; };
  const code = (line, value) => element("code", value, line);

  const link = pane => (line, number) => {
    const entry = pane.entries[number];
    const button = element("button", `${entry.o} ${entry.n}`, line);
    button.type = "button";
    button.addEventListener("click", () => select(pane, number));
  };

  const rule = (line, name) => {
    const target = document.getElementById(`rule-${name}`);
    if (!target) { line.textContent = name; return; }
    const anchor = element("a", name, line);
    anchor.href = `#rule-${encodeURIComponent(name)}`;
    anchor.addEventListener("click", () => { target.open = true; });
  };

  function select(pane, number) {
    const entry = pane.entries[number], there = other(pane), related = kin(pane, entry);
    pane.mark("sel", new Set([number]));
    pane.mark("kin", new Set());
    pane.show(number);
    if (there) {
      there.mark("sel", new Set());
      there.mark("kin", related);
      if (related.size) there.show(Math.min(...related));
    }
    detail.replaceChildren();
    element("h3", `${entry.o}  ${entry.n}`, detail);
    const list = element("dl", undefined, detail);
    row(list, "runs", [data.places[entry.p] + (entry.w ? `: ${entry.w}` : "")], text);
    row(list, "result", entry.t && [entry.t], code);
    row(list, "DirectML", entry.d && [entry.d], text);
    const words = pane.key === "after" ? "comes from" : "becomes";
    if (there) row(list, words, [...related], link(there));
    const unseen = (entry.s || []).filter(name => !there || !there.names.has(name));
    row(list, "nodes of the source", unseen, code);
    row(list, "became", entry.g && [entry.g], text);
    row(list, "source lines", entry.l, code);
    row(list, "rules", entry.r, rule);
    row(list, "promise", entry.c && [entry.c], text);
    row(list, "findings", entry.f, text);
  }

  // --- search

  const search = document.getElementById("search"), hits = document.getElementById("hits");
  let found = [], current = -1;

  const next = () => {
    if (!found.length) return;
    current = (current + 1) % found.length;
    select(...found[current]);
  };

  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    found = [];
    current = -1;
    for (const pane of Object.values(panes)) {
      const numbers = new Set();
      pane.entries.forEach((entry, number) => {
        if (wanted && `${entry.o} ${entry.n}`.toLowerCase().includes(wanted)) {
          numbers.add(number);
          found.push([pane, number]);
        }
      });
      pane.mark("hit", numbers);
      if (pane.picture) pane.picture.classList.toggle("found", Boolean(wanted));
    }
    hits.textContent = wanted ? `${found.length} found${found.length ? "; Enter shows the next" : ""}` : "";
  });
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") next();
    if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); }
  });

  // --- tables, which are made when they are opened

  const table = (root, heads, rows, fill) => {
    const made = element("table", undefined, root);
    const head = element("tr", undefined, element("thead", undefined, made));
    heads.forEach(text => { element("th", text, head).scope = "col"; });
    const body = element("tbody", undefined, made);
    rows.forEach(each => fill(element("tr", undefined, body), each));
  };

  const opened = (name, make) => {
    const root = document.getElementById(name);
    root.addEventListener("toggle", () => {
      const inside = root.querySelector(".wide");
      if (root.open && !inside.childElementCount) make(inside);
    });
  };

  opened("nodes", root => {
    const rows = Object.values(panes).flatMap(pane => pane.entries.map((entry, number) => [pane, entry, number]));
    table(root, ["graph", "operator", "name", "runs", "reason"], rows, (line, [pane, entry, number]) => {
      element("td", pane.key, line);
      element("td", entry.o, line);
      const button = element("button", entry.n, element("td", undefined, line));
      button.type = "button";
      button.addEventListener("click", () => { select(pane, number); detail.scrollIntoView({ block: "nearest" }); });
      element("td", data.places[entry.p], line);
      element("td", entry.w || "", line);
    });
  });

  opened("ledger", root => {
    table(root, ["rule", "nodes before", "nodes after"], data.ledger, (line, [name, before, after]) => {
      rule(element("td", undefined, line), name);
      element("td", before.join(", "), line);
      element("td", after.join(", ") || "nothing", line);
    });
  });
})();
