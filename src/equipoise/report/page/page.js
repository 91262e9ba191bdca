// Tabs, plots in the house's look, day and night, terms, copying and printing.
(() => {
  "use strict";
  const root = document.documentElement;
  const settings = JSON.parse(document.getElementById("figures").textContent);
  const tabs = Array.from(document.querySelectorAll("[role=tab]"));
  const sections = Array.from(document.querySelectorAll("main > section"));
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  function isDark() {
    return !printing && (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  }

  function colors() { return isDark() ? settings.dark : settings.light; }

  // Colors of the day by those of the night, wherever a figure names them.
  function night(value) {
    if (typeof value === "string") {
      if (settings.night[value]) { return settings.night[value]; }
      const soft = /^rgba\((\d+), ?(\d+), ?(\d+), ?([\d.]+)\)$/.exec(value);
      if (!soft) { return value; }
      const hex = "#" + soft.slice(1, 4).map((part) => Number(part).toString(16).padStart(2, "0")).join("");
      const other = settings.night[hex];
      if (!other) { return value; }
      const parts = [1, 3, 5].map((at) => parseInt(other.slice(at, at + 2), 16));
      return "rgba(" + parts.join(",") + "," + soft[4] + ")";
    }
    if (Array.isArray(value)) { return typeof value[value.length - 1] === "number" ? value : value.map(night); }
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, night(inner)]));
    }
    return value;
  }

  function merge(base, more) {
    const result = Object.assign({}, base);
    Object.entries(more || {}).forEach(([key, value]) => {
      const plain = value && typeof value === "object" && !Array.isArray(value);
      result[key] = plain ? merge(result[key], value) : value;
    });
    return result;
  }

  function houseLayout(layout, height) {
    const c = colors();
    const axis = {
      gridcolor: c.grid, zeroline: false, linecolor: c.muted, ticks: "outside", tickcolor: c.muted, ticklen: 4,
      automargin: true, title: { standoff: 8 },
    };
    const base = {
      font: { family: settings.font, size: 13, color: c.ink }, paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)", colorway: settings.palette.map((color) => (isDark() ? settings.night[color] : color)),
      margin: { l: 56, r: 16, t: 12, b: 48 }, hoverlabel: { bgcolor: c.paper, bordercolor: c.line, font: { color: c.ink } },
      legend: { orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom", x: 0 },
    };
    Object.keys(layout).concat(["xaxis", "yaxis"]).filter((key) => /^[xy]axis\d*$/.test(key)).forEach((key) => { base[key] = axis; });
    const own = Object.assign({}, layout);
    delete own.template;
    return Object.assign(merge(base, isDark() ? night(own) : own), { autosize: true, height });
  }

  function plot(node, data, layout, height) {
    node.style.minHeight = "";
    const drawn = isDark() ? night(data) : data;
    window.Plotly.react(node, drawn, houseLayout(layout, height), {
      responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false,
    });
  }

  // Plots are drawn when they first come into view: a hidden element has no width to draw into.
  function draw(again) {
    document.querySelectorAll("[data-figure-number]").forEach((node) => {
      if ((node.dataset.drawn && !again) || !node.offsetParent) { return; }
      const figure = settings.figures[Number(node.dataset.figureNumber)];
      node.dataset.drawn = "1";
      plot(node, figure.data, figure.layout, Number(node.dataset.height));
    });
    document.dispatchEvent(new Event("equipoise:shown"));
  }

  if (window.Plotly) { window.Plotly.setPlotConfig({ logging: 0 }); } // a reader has no use for its remarks
  window.equipoise = { plot, colors };

  // Day and night
  const lamp = document.querySelector("[data-part=lamp]");
  function nameLamp() { lamp.textContent = isDark() ? "Light" : "Dark"; lamp.setAttribute("aria-label", (isDark() ? "Light" : "Dark") + " colors"); }
  lamp.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameLamp(); draw(true); });
  system.addEventListener("change", () => { nameLamp(); draw(true); });
  nameLamp();

  // Tabs
  function select(index, focus) {
    sections.forEach((section, i) => { section.hidden = i !== index; });
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    if (tabs[index]) {
      const list = tabs[index].parentNode;
      list.scrollLeft = tabs[index].offsetLeft - list.offsetLeft - 16;
      if (focus) { tabs[index].focus({ preventScroll: true }); }
    }
    draw(false);
  }

  function fromAddress() {
    const id = decodeURIComponent(window.location.hash.slice(1));
    return Math.max(sections.findIndex((section) => section.id === id), 0);
  }

  if (tabs.length) {
    document.body.classList.add("tabbed");
    tabs.forEach((tab, index) => {
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        try { window.history.replaceState(null, "", "#" + sections[index].id); } catch (error) { /* file:// in some browsers */ }
        select(index, true);
        if (document.querySelector("nav").getBoundingClientRect().top <= 0) {
          window.scrollTo(0, document.querySelector("main").offsetTop - 60);
        }
      });
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowRight: index + 1, ArrowLeft: index - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
        if (to !== undefined) { event.preventDefault(); select(to % tabs.length, true); }
      });
    });
    window.addEventListener("hashchange", () => select(fromAddress(), false));
    select(fromAddress(), false);
  } else {
    draw(false);
  }
  document.querySelectorAll("details").forEach((node) => node.addEventListener("toggle", () => draw(false)));

  // Terms: one bubble for all
  const bubble = document.querySelector("[role=tooltip]");
  function explain(term) {
    bubble.textContent = document.getElementById(term.dataset.term).querySelector("dd").textContent;
    bubble.hidden = false;
    const box = term.getBoundingClientRect();
    const left = Math.min(Math.max(box.left, 12), window.innerWidth - bubble.offsetWidth - 12);
    const above = box.top > bubble.offsetHeight + 12;
    bubble.style.left = left + "px";
    bubble.style.top = (above ? box.top - bubble.offsetHeight - 8 : box.bottom + 8) + "px";
  }
  document.querySelectorAll("[data-term]").forEach((term) => {
    ["mouseenter", "focus", "click"].forEach((kind) => term.addEventListener(kind, () => explain(term)));
    ["mouseleave", "blur"].forEach((kind) => term.addEventListener(kind, () => { bubble.hidden = true; }));
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && bubble) { bubble.hidden = true; } });

  // Copying: file:// pages have no clipboard interface in some browsers
  function copy(text) {
    if (navigator.clipboard && window.isSecureContext) { return navigator.clipboard.writeText(text); }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("refused"));
  }
  document.querySelectorAll("button[data-copy]").forEach((button) => {
    const said = button.textContent;
    button.addEventListener("click", () => {
      const code = button.parentNode.querySelector("code");
      copy(code.textContent).then(() => { button.textContent = "Copied"; }, () => {
        window.getSelection().selectAllChildren(code);
        button.textContent = "Press Ctrl+C";
      }).then(() => window.setTimeout(() => { button.textContent = said; }, 1800));
    });
  });

  // Printing: every section, every fold, by daylight
  let before = [];
  window.addEventListener("beforeprint", () => {
    printing = true;
    before = sections.map((section) => section.hidden);
    sections.forEach((section) => { section.hidden = false; });
    document.querySelectorAll("details").forEach((node) => { node.open = true; });
    draw(true);
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    sections.forEach((section, i) => { section.hidden = before[i]; });
    draw(true);
  });
})();
